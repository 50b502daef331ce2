/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_TEXTS_H
#define WEIR_ROOM_TEXTS_H

/* What a text among the settings may be, by its kind. */

#include "room/settings.h"

/* Whether this, which is not empty, may be the value. */
bool text_is_valid(const struct setting_info *info, struct span value);

/* What may be, as the end of a sentence. */
void text_say_allowed(const struct setting_info *info, char *out, size_t size);

#endif
