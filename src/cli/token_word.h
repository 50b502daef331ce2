/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_TOKEN_WORD_H
#define WEIR_CLI_TOKEN_WORD_H

/*
 * A visitor's token on the command line: the word itself, or `-` for a line of stdin. It opens someone's place, so it should
 * stay out of the shell's history.
 */
#define TOKEN_WORD_MAX 4096

/* Returns 0, or what to end with after having said why. */
int token_word_read(const char *word, char token[TOKEN_WORD_MAX]);

#endif
