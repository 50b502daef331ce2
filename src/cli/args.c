/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not getopt_long: it prints its own sentences, takes abbreviations (a script that says --to today breaks when a second
 * option starts so), and would need its table a second time for the help.
 */
#include "cli/args.h"

#include <stdio.h>
#include <string.h>

const struct option_info option_list[OPTION_COUNT] = {
#define OPTION_ROW(name, written, placeholder, commands, help) \
    [OPTION_##name] = {written, placeholder, commands, help},
    OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

static bool word_add(struct args *args, const char *word, char *reason, size_t size);
static bool option_add(struct args *args, const char *text, const char *next, bool *took_next, char *reason,
                       size_t size);
static enum option option_find(const char *text, size_t len);

bool args_read(int argc, char *const argv[], struct args *args, char *reason, size_t reason_size)
{
    bool options_over = false;

    memset(args, 0, sizeof(*args));
    for (int i = 1; i < argc; i++) {
        bool took_next = false;
        if (!options_over && strcmp(argv[i], "--") == 0)
            options_over = true;
        else if (options_over || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (!word_add(args, argv[i], reason, reason_size))
                return false;
        } else if (!option_add(args, argv[i], argv[i + 1], &took_next, reason, reason_size))
            return false;
        i += took_next;
    }
    return true;
}

bool args_suit(const struct args *args, unsigned commands, char *reason, size_t reason_size)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (args->values[i] != NULL && (option_list[i].commands & commands) == 0) {
            snprintf(reason, reason_size, "%s does not take --%s", args->words[0], option_list[i].written);
            return false;
        }
    return true;
}

bool args_suit_verb(const struct args *args, unsigned verbs, char *reason, size_t reason_size)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (args->values[i] != NULL && (option_list[i].commands & verbs) == 0) {
            snprintf(reason, reason_size, "%s %s does not take --%s", args->words[0], args->words[1],
                     option_list[i].written);
            return false;
        }
    return true;
}

bool args_has(const struct args *args, enum option option)
{
    return args->values[option] != NULL;
}

static bool word_add(struct args *args, const char *word, char *reason, size_t size)
{
    if (args->count == ARGS_WORDS_MAX) {
        snprintf(reason, size, "more than %d words", ARGS_WORDS_MAX);
        return false;
    }
    args->words[args->count++] = word;
    return true;
}

static bool option_add(struct args *args, const char *text, const char *next, bool *took_next, char *reason,
                       size_t size)
{
    size_t len = strcspn(text, "=");
    const char *value = text[len] == '=' ? text + len + 1 : NULL;
    enum option option = strncmp(text, "--", 2) == 0 ? option_find(text + 2, len - 2) : OPTION_COUNT;

    reason[0] = '\0';
    if (option == OPTION_COUNT) {
        snprintf(reason, size, "there is no option %.*s", (int)len, text);
        return false;
    }
    if (option_list[option].placeholder == NULL) {
        args->values[option] = "";
        if (value != NULL)
            snprintf(reason, size, "--%s takes no value", option_list[option].written);
        return value == NULL;
    }
    *took_next = value == NULL;
    args->values[option] = value != NULL ? value : next;
    if (args->values[option] == NULL)
        snprintf(reason, size, "--%s needs a value", option_list[option].written);
    return args->values[option] != NULL;
}

static enum option option_find(const char *text, size_t len)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_list[i].written) == len && strncmp(option_list[i].written, text, len) == 0)
            return (enum option)i;
    return OPTION_COUNT;
}
