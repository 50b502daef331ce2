/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_VERSION_H
#define WEIR_BASE_VERSION_H

/* The one place that says which Weir this is. */
#define WEIR_VERSION "0.1.0"

#endif
