/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_NEWS_H
#define WEIR_NGINX_STORE_NEWS_H

/* What the error log is told of a store: that its servers were found, who they are, and why they are not there. */

#include "nginx/store_conf.h"
#include "redis/store.h"

void store_news_begin(const struct store_conf *conf);

/* Once a turn: says what is new, if anything is. */
void store_news_tell(struct store *store, uint64_t now_ms);

/* The same for what servers refused: `refusal` is the latest reason, a constant phrase, or NULL. */
void store_news_tell_refusal(const char *refusal, uint64_t now_ms);

/* Whether there were any. */
bool store_news_are_told(void);

#endif
