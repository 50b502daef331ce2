/* SPDX-License-Identifier: BSD-2-Clause */

/* The list as a table by number: looking one up cannot fail. */

#include "base/error.h"

#include "base/must.h"

static const struct error_info errors[] = {[ERROR_NONE] = {0, "", "", ""},
#define ERROR_ROW(name, status, code, message, meaning) [ERROR_##name] = {status, code, message, meaning},
                                           ERROR_LIST(ERROR_ROW)
#undef ERROR_ROW
};

const struct error_info *error_info(enum error error)
{
    must(error > ERROR_NONE && error < ERROR_COUNT);
    return &errors[error];
}
