/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

/*
 * The one list of operating errors. The API, the log, the metrics and docs/reference/errors.md are made from it.
 * Codes are stable; messages are for people.
 *
 * ERROR(name, HTTP status, code in the API, message, what it means and what to do)
 */
#define ERROR_LIST(ERROR)                                                                                   \
    ERROR(INVALID_REQUEST, 400, "INVALID_REQUEST", "The request is not valid",                              \
          "The body is not one JSON object with the expected fields and types, or the query is malformed.") \
    ERROR(INVALID_SETTING, 400, "INVALID_SETTING", "A setting is not valid",                                \
          "The message names the setting and what is allowed. Nothing was changed.")                        \
    ERROR(MISSING_EVENT_ID, 400, "MISSING_EVENT_ID", "event_id is required", "A join names no room.")       \
    ERROR(INVALID_EVENT_ID, 400, "INVALID_EVENT_ID",                                                        \
          "event_id must be 1 to 64 characters of A-Z a-z 0-9 _ . : -",                                     \
          "The room id cannot exist. (`.` and `..` cannot either: no path can name them.)")                 \
    ERROR(MISSING_TOKEN, 400, "MISSING_TOKEN", "A waiting token is required",                               \
          "The call needs the token that the join returned.")                                               \
    ERROR(IDEMPOTENCY_REQUIRED, 400, "IDEMPOTENCY_REQUIRED", "An Idempotency-Key header is required",       \
          "The operator asks for a key on this call (weir_idempotency required).")                          \
    ERROR(INVALID_IDEMPOTENCY_KEY, 400, "INVALID_IDEMPOTENCY_KEY",                                          \
          "Idempotency-Key must be 1 to 128 printable characters", "The key cannot be used.")               \
    ERROR(UNAUTHORIZED, 401, "UNAUTHORIZED", "A valid admin token is required",                             \
          "The operator's API needs a bearer token of the admin token file. One answer for all that is "    \
          "wrong with it.")                                                                                 \
    ERROR(NOT_READY, 403, "NOT_READY", "Your turn has not arrived yet",                                     \
          "An enter before the call. Poll status and enter when ready_for_entry is true.")                  \
    ERROR(ADMISSION_REQUIRED, 403, "ADMISSION_REQUIRED", "A pass is required: please join the line first",  \
          "The gate saw no valid pass for this room. redirectTo says where the line is.")                   \
    ERROR(                                                                                                  \
        TOKEN_NOT_FOUND, 404, "TOKEN_NOT_FOUND", "Waiting token not found or expired",                      \
        "Not a living ticket: done, left, expired, tampered with, or of another kind. One answer for all.") \
    ERROR(ROOM_NOT_FOUND, 404, "ROOM_NOT_FOUND", "There is no such room",                                   \
          "The room is not configured and rooms are not created on demand (weir_rooms listed).")            \
    ERROR(NOT_FOUND, 404, "NOT_FOUND", "There is no such resource", "The path is not part of the API.")     \
    ERROR(METHOD_NOT_ALLOWED, 405, "METHOD_NOT_ALLOWED", "This method is not allowed here",                 \
          "The Allow header names the methods of this path.")                                               \
    ERROR(CONFLICT, 409, "CONFLICT", "Somebody else changed this at the same time",                         \
          "Nothing was changed. Look again and repeat.")                                                    \
    ERROR(IDEMPOTENCY_CONFLICT, 409, "IDEMPOTENCY_CONFLICT",                                                \
          "This Idempotency-Key was used with a different request", "Use a new key for a new request.")     \
    ERROR(BODY_TOO_LARGE, 413, "BODY_TOO_LARGE", "The request body is too large",                           \
          "The body is over the limit of the queue API.")                                                   \
    ERROR(RATE_LIMITED, 429, "RATE_LIMITED", "Too many requests",                                           \
          "This client asks too often. retry_after says when to come back.")                                \
    ERROR(QUEUE_FULL, 429, "QUEUE_FULL", "The line is full at the moment",                                  \
          "max_waiting is reached, or the memory zone is full. retry_after says when to come back.")        \
    ERROR(WAIT_TOO_LONG, 429, "WAIT_TOO_LONG", "The wait would be too long at the moment",                  \
          "Joining now would mean waiting longer than max_eta_sec. retry_after says when to come back.")    \
    ERROR(ENGINE_UNAVAILABLE, 503, "ENGINE_UNAVAILABLE", "The waiting room is unavailable for a moment",    \
          "The engine cannot answer. Waiting helps; places are kept.")                                      \
    ERROR(ROOM_CLOSED, 503, "ROOM_CLOSED", "The room is closed at the moment",                              \
          "The operator closed the room (mode closed).")                                                    \
    ERROR(SERVICE_UNAVAILABLE, 503, "SERVICE_UNAVAILABLE", "The shop is unavailable for a moment",          \
          "Too many requests to it failed, and weir_breaker leaves it alone for a while. retry_after says " \
          "when to come back.")

enum error {
    ERROR_NONE = 0,
#define ERROR_ENUM(name, status, code, message, meaning) ERROR_##name,
    ERROR_LIST(ERROR_ENUM)
#undef ERROR_ENUM
        ERROR_COUNT
};

struct error_info {
    int http_status;
    const char *code;
    const char *message;
    const char *meaning;
};

/* Never NULL; `error` must be one of the list, not ERROR_NONE. */
const struct error_info *error_info(enum error error);

#endif
