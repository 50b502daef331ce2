/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any lines as settings: of a journal, which are taken whole or refused; of a server, for texts; and one by one as an operator's
 * changes, which are applied or change nothing. What is taken is written and read as the same.
 */
#include "base/must.h"
#include "base/utf8.h"
#include "room/settings.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whoever shows it may rely on this. */
static void text_check(struct span text, const struct setting_info *info)
{
    must(text.len <= info->bytes);
    for (size_t at = 0, bytes; at < text.len; at += bytes) {
        bytes = utf8_length(text.data + at, text.data + text.len);
        must(bytes > 0 && (unsigned char)text.data[at] >= ' ');
    }
}

static void assert_comes_back(const struct settings *settings, const struct texts *texts)
{
    char lines[SETTINGS_TEXT_MAX];
    struct settings read;
    struct texts texts_read;

    for (size_t i = setting_numbers; i < setting_count; i++)
        text_check(setting_text(texts, &setting_list[i]), &setting_list[i]);
    size_t len = settings_to_text(settings, texts, lines);
    must(settings_from_text(&read, &texts_read, (struct span){lines, len}));
    must(memcmp(&read, settings, sizeof(read)) == 0 && memcmp(&texts_read, texts, sizeof(texts_read)) == 0);
    len = texts_to_text(texts, lines);
    must(texts_from_text(&texts_read, (struct span){lines, len}));
    must(memcmp(&texts_read, texts, sizeof(texts_read)) == 0);
}

static void change(struct settings *settings, struct texts *texts, struct span line)
{
    const char *equals = memchr(line.data, '=', line.len);
    struct settings before = *settings;
    struct texts texts_before = *texts;
    char reason[256];

    if (equals == NULL)
        return;
    struct setting_change one = {{line.data, (size_t)(equals - line.data)},
                                 {equals + 1, line.len - (size_t)(equals - line.data) - 1}};
    if (settings_apply(settings, texts, &one, 1, reason, sizeof(reason)))
        return;
    must(memchr(reason, '\0', sizeof(reason)) != NULL && reason[0] != '\0');
    must(memcmp(settings, &before, sizeof(before)) == 0);
    must(memcmp(texts, &texts_before, sizeof(texts_before)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = {(const char *)data, size};
    struct settings settings = settings_default();
    struct texts texts = {0};

    while (input.len > 0) {
        const char *end = memchr(input.data, '\n', input.len);
        size_t len = end == NULL ? input.len : (size_t)(end - input.data);
        change(&settings, &texts, (struct span){input.data, len});
        len += end != NULL;
        input = (struct span){input.data + len, input.len - len};
    }
    assert_comes_back(&settings, &texts);
    input = (struct span){(const char *)data, size};
    if (settings_from_text(&settings, &texts, input))
        assert_comes_back(&settings, &texts);
    settings = settings_default();
    if (texts_from_text(&texts, input))
        assert_comes_back(&settings, &texts);
    return 0;
}
