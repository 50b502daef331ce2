/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_TOKEN_FILE_H
#define WEIR_CLI_TOKEN_FILE_H

/* The admin token of the operator: the first `NAME TOKEN` line of a file, the same file the server reads. */

#define TOKEN_MAX 256

/*
 * Reads it into `token` (TOKEN_MAX + 1 bytes, NUL-terminated). `path` NULL: the file that WEIR_TOKEN_FILE names.
 * Returns 0, or what to end with after having said why; what the file holds is never said.
 */
int token_file_read(const char *path, char *token);

#endif
