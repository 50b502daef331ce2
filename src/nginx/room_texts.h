/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ROOM_TEXTS_H
#define WEIR_NGINX_ROOM_TEXTS_H

/*
 * What the pages of rooms show, as this worker last heard of it: so that an answer with a title in it need not have kilobytes of
 * texts read each time. Figures say by epoch and version whether it is still that.
 */

#include "engine/engine.h"

/* NULL: it is to be asked for (ENGINE_FIGURES with texts) and kept. Valid until the next call here. */
const struct texts *room_texts_known(struct span room, const struct figures *figures);

/* What the figures came with. */
const struct texts *room_texts_keep(struct span room, const struct figures *figures,
                                    const struct texts *texts);

#endif
