/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_KEY_ROTATE_H
#define WEIR_CLI_KEY_ROTATE_H

/*
 * `weir key rotate FILE`: a new key for a secret file, at random, in front of the old ones, which go on verifying. The file is
 * replaced as a whole or not at all, and everything else in it stays as it is, comments too.
 *
 *   --next          the new key verifies and does not sign yet; the rotation after this one makes it sign
 *   --drop-oldest   the last key ends: its line becomes the `holder` line, or goes if there is one
 */

#include "cli/args.h"

int key_rotate(const struct args *args, const char *path);

#endif
