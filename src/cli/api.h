/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_API_H
#define WEIR_CLI_API_H

/*
 * The operator's API as the command line calls it: one JSON exchange at a time, each bounded in time and size.
 *
 * The admin token is read from a file and goes into a request header and nowhere else: not into argv, the environment, a
 * URL, an error message.
 */

#include "cli/args.h"

#include <jansson.h>
#include <stdbool.h>

#define API_TIMEOUT_SEC 10
#define API_ANSWER_MAX  (8u << 20)

#define API_REASON_MAX 1024

struct api;

/*
 * A connection to the server that the options or the environment name. NULL after having said why; `exit_code` is then
 * what to end with.
 */
struct api *api_new(const struct args *args, int *exit_code);
void api_free(struct api *api);

/*
 * Sends `body` (consumed; NULL = none) and returns the answer of a call that succeeded, always an object and the caller's
 * to json_decref. NULL when it did not: api_reason() is then one sentence.
 */
json_t *api_call(struct api *api, const char *method, const char *path, json_t *body);

const char *api_reason(const struct api *api);
const char *api_url(const struct api *api);

/* Asked at least once a second while a call is under way; true gives the call up. */
void api_set_interrupt(struct api *api, bool (*is_over)(void *context), void *context);

/* For an answer that came but is not what the contract says: says so, returns the exit code. */
int api_say_strange(const struct api *api);

/* Prints what a program wants to read: one line of JSON. Consumes `json`; returns the exit code, 0. */
int api_print_json(json_t *json);

#endif
