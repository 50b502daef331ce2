/* SPDX-License-Identifier: BSD-2-Clause */
/* Room settings in their written form: what is read, what is refused, and that a refusal changes nothing. */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON 256

static bool set(struct settings *settings, const char *name, struct span value, char *reason)
{
    struct setting_change change = {span_of(name), value};

    return settings_apply(settings, NULL, &change, 1, reason, REASON);
}

static void every_default_is_within_its_range(void **state)
{
    struct settings settings = settings_default();
    (void)state;

    assert_true(setting_numbers > 10);
    assert_int_equal(setting_numbers * sizeof(uint32_t), sizeof(settings));
    for (size_t i = 0; i < setting_numbers; i++) {
        const struct setting_info *info = &setting_list[i];
        assert_true(info->lowest <= info->value && info->value <= info->highest);
        assert_int_equal(setting_value(&settings, info), info->value);
        assert_ptr_equal(setting_find(span_of(info->name)), info);
        assert_true(strlen(info->help) > 0);
    }
}

static void what_is_written_is_read_back_as_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_numbers; i++) {
        const struct setting_info *info = &setting_list[i];
        struct dice dice = {i};
        for (int n = 0; n < 200; n++) {
            uint64_t width = (uint64_t)info->highest - info->lowest + 1;
            uint32_t value = info->lowest + (uint32_t)(dice_roll(&dice) % width);
            struct settings settings = settings_default();
            char text[64], reason[REASON];
            value = n == 0 ? info->lowest : n == 1 ? info->highest : value;
            settings.rate_max_milli = 1000; /* without which a pace cannot be auto */
            setting_format(info, value, text, sizeof(text));
            if (!set(&settings, info->name, span_of(text), reason))
                fail_msg("%s = %s: %s", info->name, text, reason);
            assert_int_equal(setting_value(&settings, info), value);
        }
    }
}

/* One sentence that names the setting and what is allowed; and nothing has changed. */
static void what_is_out_of_range_or_no_number_is_refused_with_the_range(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "+1",
                                      "1 ",
                                      " 1",
                                      "1e3",
                                      "0x1",
                                      "1,5",
                                      "1..5",
                                      ".5",
                                      "5.",
                                      "1.0001",
                                      "true1",
                                      "yes",
                                      "TRUE",
                                      "Queue",
                                      "4294967296",
                                      "18446744073709551617",
                                      "999999999999999999999999999999"};
    (void)state;

    for (size_t i = 0; i < setting_numbers; i++) {
        const struct setting_info *info = &setting_list[i];
        char beyond[3][32], lowest[32];
        snprintf(beyond[0], sizeof(beyond[0]), "%" PRIu64, (uint64_t)info->highest + 1);
        snprintf(beyond[1], sizeof(beyond[1]), "%" PRIu64, (uint64_t)info->highest + 4294967296U);
        snprintf(beyond[2], sizeof(beyond[2]), "%" PRId64, (int64_t)info->lowest - 1);
        setting_format(info, info->lowest, lowest, sizeof(lowest));
        for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]) + 3; n++) {
            struct settings settings = settings_default(), before = settings;
            char reason[REASON] = "";
            const char *text = n < 3 ? beyond[n] : bad[n - 3];
            bool is_far_beyond = info->kind == SETTING_MILLI && n < 2; /* the rate counts thousandths */
            if (is_far_beyond || strcmp(text, "0") == 0)
                continue;
            if (set(&settings, info->name, span_of(text), reason))
                fail_msg("%s = \"%s\" was accepted", info->name, text);
            assert_memory_equal(&settings, &before, sizeof(settings));
            assert_non_null(strstr(reason, info->name));
            assert_non_null(strstr(reason, lowest));
        }
    }
}

static void numbers_with_decimals_are_kept_in_thousandths(void **state)
{
    static const struct {
        const char *text;
        uint32_t milli;
    } good[] = {{"50", 50000}, {"0.5", 500}, {"0.05", 50}, {"0.001", 1}, {"1.5", 1500}, {"1.234", 1234}};
    char reason[REASON];
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct settings settings = settings_default();
        assert_true(set(&settings, "rate", span_of(good[i].text), reason));
        assert_int_equal(settings.rate_milli, good[i].milli);
    }
    struct settings settings = settings_default();
    assert_false(set(&settings, "rate", SPAN("0"), reason));
    assert_false(set(&settings, "rate", SPAN("0.0"), reason));
    assert_false(set(&settings, "rate", SPAN("100000.001"), reason));
}

static void unknown_names_and_any_bytes_are_refused_without_harm(void **state)
{
    struct settings settings = settings_default(), before = settings;
    struct dice dice = {11};
    char reason[REASON], bytes[300];
    (void)state;

    assert_false(set(&settings, "colour", SPAN("blue"), reason));
    assert_non_null(strstr(reason, "colour"));
    for (int n = 0; n < 20000; n++) {
        uint32_t len = dice_below(&dice, sizeof(bytes));
        for (uint32_t i = 0; i < len; i++)
            bytes[i] = (char)dice_below(&dice, 256);
        struct setting_change changes[] = {{{bytes, len / 2}, {bytes, len}},
                                           {SPAN("max_called"), {bytes, len % 8}}};
        char small[8];
        settings_apply(&settings, NULL, changes, 1, small, sizeof(small));
        settings_apply(&settings, NULL, changes + 1, 1, reason, 1 + dice_below(&dice, REASON));
        settings.max_called = before.max_called;
    }
    assert_memory_equal(&settings, &before, sizeof(settings));
}

/* ---- several at once ---- */

static void several_changes_are_all_or_none(void **state)
{
    struct settings settings = settings_default(), before = settings;
    struct setting_change changes[] = {
        {SPAN("max_active"), SPAN("7")}, {SPAN("rate"), SPAN("3")}, {SPAN("claim_ttl_sec"), SPAN("0")}};
    char reason[REASON];
    (void)state;

    assert_false(settings_apply(&settings, NULL, changes, 3, reason, sizeof(reason)));
    assert_memory_equal(&settings, &before, sizeof(settings));
    assert_true(settings_apply(&settings, NULL, changes, 2, reason, sizeof(reason)));
    assert_int_equal(settings.max_active, 7);
    assert_int_equal(settings.rate_milli, 3000);
    assert_true(settings_apply(&settings, NULL, NULL, 0, reason, sizeof(reason)));
}

static void nothing_is_named_twice_and_rate_and_batch_exclude_each_other(void **state)
{
    struct settings settings = settings_default(), before = settings;
    struct setting_change twice[] = {{SPAN("burst"), SPAN("7")}, {SPAN("burst"), SPAN("7")}};
    struct setting_change both[] = {{SPAN("rate"), SPAN("7")}, {SPAN("batch"), SPAN("7")}};
    char reason[REASON];
    (void)state;

    assert_false(settings_apply(&settings, NULL, twice, 2, reason, sizeof(reason)));
    assert_non_null(strstr(reason, "burst"));
    assert_false(settings_apply(&settings, NULL, both, 2, reason, sizeof(reason)));
    assert_memory_equal(&settings, &before, sizeof(settings));
    assert_true(settings_apply(&settings, NULL, both + 1, 1, reason, sizeof(reason)));
    assert_int_equal(settings.batch, 7);
    assert_true(settings_apply(&settings, NULL, both, 1, reason, sizeof(reason)));
    assert_int_equal(settings.batch, 0);
}

static void a_preset_comes_first_wherever_it_stands_and_what_is_named_wins(void **state)
{
    struct setting_change changes[] = {
        {SPAN("max_called"), SPAN("5")}, {SPAN("preset"), SPAN("queue")}, {SPAN("min_wait_sec"), SPAN("9")}};
    struct settings settings = settings_default();
    char reason[REASON];
    (void)state;

    settings.session_ttl_sec = 77; /* from before: the preset starts anew */
    assert_true(settings_apply(&settings, NULL, changes, 3, reason, sizeof(reason)));
    assert_int_equal(settings.preset, PRESET_QUEUE);
    assert_int_equal(settings.max_called, 5);
    assert_int_equal(settings.min_wait_sec, 9);
    assert_int_equal(settings.max_waiting, 100000);
    assert_int_equal(settings.session_ttl_sec, settings_default().session_ttl_sec);
    changes[1].value = SPAN("nonsense");
    assert_false(settings_apply(&settings, NULL, changes, 3, reason, sizeof(reason)));
    assert_non_null(strstr(reason, "concert"));
}

/* ---- the table of the contract ---- */

struct row {
    const char *name, *value;
};

static const struct row plain[] = {
    {"mode", "queue"},
    {"preset", "plain"},
    {"max_active", "1000"},
    {"rate", "50"},
    {"burst", "0"},
    {"batch", "0"},
    {"interval_sec", "10"},
    {"smooth", "true"},
    {"max_called", "0"},
    {"min_wait_sec", "0"},
    {"seen_ttl_sec", "10"},
    {"away_ttl_sec", "1800"},
    {"claim_ttl_sec", "60"},
    {"arrive_ttl_sec", "180"},
    {"session_ttl_sec", "600"},
    {"session_max_sec", "0"},
    {"session_renew", "true"},
    {"pace", "fixed"},
    {"rate_min", "1"},
    {"rate_max", "0"},
    {"shop_target_ms", "0"},
    {"max_waiting", "0"},
    {"max_eta_sec", "0"},
    {"eta_cap_sec", "0"},
    {"tier", "2"},
};

/* What a preset gives otherwise than `plain`; all else is the same. */
static const struct {
    const char *preset;
    struct row rows[6];
} presets[] = {
    {"plain", {{NULL, NULL}}},
    {"queue",
     {{"rate", "50"},
      {"max_called", "100"},
      {"min_wait_sec", "5"},
      {"max_waiting", "100000"},
      {"max_eta_sec", "0"}}},
    {"hall", {{"max_active", "1000"}, {"rate", "100"}, {"session_max_sec", "600"}}},
    {"lobby",
     {{"tier", "1"},
      {"max_active", "0"},
      {"batch", "500"},
      {"interval_sec", "10"},
      {"session_max_sec", "600"}}},
    {"concert", {{"max_active", "40000"}, {"batch", "1400"}, {"interval_sec", "10"}}},
};

static const char *expected_value(const char *name, size_t preset)
{
    const char *value = NULL;

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(plain[i].name, name) == 0)
            value = plain[i].value;
    for (const struct row *row = presets[preset].rows; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            value = row->value;
    return strcmp(name, "preset") == 0 ? presets[preset].preset : value;
}

static void every_preset_is_as_the_contract_says(void **state)
{
    (void)state;
    for (size_t preset = 0; preset < sizeof(presets) / sizeof(presets[0]); preset++) {
        struct settings settings = settings_default();
        char reason[REASON], text[64];
        for (size_t i = 0; i < setting_numbers; i++) /* nothing of what was before remains */
            if (setting_list[i].kind == SETTING_WHOLE)
                assert_true(set(&settings, setting_list[i].name, SPAN("2"), reason) ||
                            setting_list[i].lowest > 2);
        assert_true(set(&settings, "preset", span_of(presets[preset].preset), reason));
        for (size_t i = 0; i < setting_numbers; i++) {
            setting_format(&setting_list[i], setting_value(&settings, &setting_list[i]), text, sizeof(text));
            assert_non_null(expected_value(setting_list[i].name, preset));
            assert_string_equal(text, expected_value(setting_list[i].name, preset));
        }
    }
    assert_int_equal(sizeof(presets) / sizeof(presets[0]), PRESET_COUNT);
}

static bool applied(struct settings *settings, const char *const *words, size_t count, char reason[REASON])
{
    struct setting_change changes[8];

    for (size_t i = 0; i < count; i++)
        changes[i] = (struct setting_change){span_of(words[2 * i]), span_of(words[2 * i + 1])};
    return settings_apply(settings, NULL, changes, count, reason, REASON);
}

#define APPLIED(settings, reason, ...)                    \
    applied(settings, (const char *const[]){__VA_ARGS__}, \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) / 2, reason)

static void a_pace_that_follows_the_shop_needs_its_bounds_and_has_no_batch(void **state)
{
    struct settings settings = settings_default(), before = settings;
    char reason[REASON];
    (void)state;

    assert_false(APPLIED(&settings, reason, "pace", "auto"));
    assert_non_null(strstr(reason, "needs rate_max"));
    assert_false(APPLIED(&settings, reason, "pace", "auto", "rate_max", "5", "rate_min", "6"));
    assert_non_null(strstr(reason, "rate_min is more than rate_max"));
    assert_false(APPLIED(&settings, reason, "pace", "auto", "rate_max", "5", "batch", "10"));
    assert_non_null(strstr(reason, "batch"));
    assert_memory_equal(&settings, &before, sizeof(settings));

    assert_true(APPLIED(&settings, reason, "batch", "10"));
    assert_true(APPLIED(&settings, reason, "pace", "auto", "rate_max", "5"));
    assert_int_equal(settings.batch, 0);
    assert_false(APPLIED(&settings, reason, "batch", "10"));
    assert_false(APPLIED(&settings, reason, "rate_max", "0.5"));
    assert_true(APPLIED(&settings, reason, "batch", "10", "pace", "fixed"));
    assert_int_equal(settings.batch, 10);
}

/* ---- as a journal keeps them ---- */

static struct settings settings_with(uint32_t (*value)(const struct setting_info *info))
{
    struct settings settings = settings_default();

    for (size_t i = 0; i < setting_numbers; i++)
        setting_set(&settings, &setting_list[i], value(&setting_list[i]));
    return settings;
}

static uint32_t lowest_of(const struct setting_info *info)
{
    return info->lowest;
}

static uint32_t highest_of(const struct setting_info *info)
{
    return info->highest;
}

/* As long as a value can be written. */
static uint32_t longest_of(const struct setting_info *info)
{
    return info->kind == SETTING_MILLI ? info->highest - 1 : info->kind == SETTING_FLAG ? 0 : info->highest;
}

static void assert_comes_back(const struct settings *settings)
{
    char text[SETTINGS_TEXT_MAX];
    struct texts longest = texts_longest(), texts_read;
    struct settings read;
    size_t len = settings_to_text(settings, &longest, text);

    assert_true(len < SETTINGS_TEXT_MAX);
    memset(&read, 0xff, sizeof(read));
    memset(&texts_read, 0xff, sizeof(texts_read));
    assert_true(settings_from_text(&read, &texts_read, (struct span){text, len}));
    assert_memory_equal(&read, settings, sizeof(read));
    assert_memory_equal(&texts_read, &longest, sizeof(longest));
}

static void all_settings_come_back_from_their_text(void **state)
{
    struct settings lowest = settings_with(lowest_of), highest = settings_with(highest_of),
                    longest = settings_with(longest_of), settings = settings_default();
    uint64_t random = 1;
    (void)state;

    assert_comes_back(&lowest);
    assert_comes_back(&highest);
    assert_comes_back(&longest);
    assert_comes_back(&settings);
    for (int round = 0; round < 5000; round++) {
        for (size_t i = 0; i < setting_numbers; i++) {
            const struct setting_info *info = &setting_list[i];
            random = random * 6364136223846793005U + 1442695040888963407U;
            uint64_t range = (uint64_t)info->highest - info->lowest + 1;
            setting_set(&settings, info, (uint32_t)(info->lowest + (random >> 33) % range));
        }
        assert_comes_back(&settings);
    }
}

static bool reads(const char *text, struct settings *settings)
{
    struct texts texts;

    return settings_from_text(settings, &texts, span_of(text));
}

/* Texts of another version: what it does not name has its default, and a name that this one does not know is refused. */
static void a_text_is_read_whole_or_refused(void **state)
{
    static const char *const bad[] = {
        "rate",          "rate=",     "rate=1",          "rate=1\nrate", "=1\n",     "\n",
        "rate=x\n",      "rate=1 \n", "max_active=-1\n", "no_such=1\n",  "tier=3\n", "mode=queue",
        "mode=asleep\n", "rate=0\n",  "tier=1\r\n",      " rate=1\n",    "RATE=1\n", "rate=1\n\n",
    };
    struct settings settings, expected = settings_default();
    struct texts texts;
    (void)state;

    assert_true(reads("", &settings));
    assert_memory_equal(&settings, &expected, sizeof(settings));
    assert_true(reads("rate=1.5\nmode=hold\n", &settings));
    expected.rate_milli = 1500;
    expected.mode = MODE_HOLD;
    assert_memory_equal(&settings, &expected, sizeof(settings));
    /* Unlike an operator, a journal names both: one of them is off. */
    assert_true(reads("rate=50\nbatch=7\npreset=lobby\n", &settings));
    assert_int_equal(settings.batch, 7);
    assert_int_equal(settings.rate_milli, 50000);
    assert_int_equal(settings.tier, 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (reads(bad[i], &settings))
            fail_msg("\"%s\" was read", bad[i]);
    assert_false(settings_from_text(&settings, &texts, (struct span){"rate=1\0\n", 8}));
}

/* ---- texts ---- */

static bool set_shown(struct texts *texts, const char *name, struct span value, char reason[REASON])
{
    struct settings settings = settings_default(), before = settings;
    struct setting_change change = {span_of(name), value};
    bool is_set = settings_apply(&settings, texts, &change, 1, reason, REASON);

    assert_memory_equal(&settings, &before, sizeof(settings));
    return is_set;
}

static void a_text_is_kept_as_it_was_written(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"title", "겨울 콘서트 예매"},
        {"title", "🎫 \"A\" \\ <b>& 'x'</script> {{}} %s $1"},
        {"title", "a=b=c"},
        {"title", " "},
        {"message", "잠시만 기다려 주세요. 곧 차례가 됩니다."},
        {"message", "عربي \u200F and \u200D joined"},
        {"logo", "https://cdn.example/logo.png?v=2#x"},
        {"logo", "https://[::1]/l.svg"},
        {"logo", "/static/logo%20a.svg"},
        {"logo", "/"},
        {"colour", "#00aAfF"},
        {"lang", "ko"},
        {"lang", "fr"},
    };
    struct texts texts = {0};
    char reason[REASON];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(set_shown(&texts, good[i][0], span_of(good[i][1]), reason));
        struct span kept = setting_text(&texts, setting_find(span_of(good[i][0])));
        assert_string_equal(kept.data, good[i][1]);
    }
    static const struct texts none;
    for (size_t i = setting_numbers; i < setting_count; i++)
        assert_true(set_shown(&texts, setting_list[i].name, SPAN(""), reason));
    assert_memory_equal(&texts, &none, sizeof(texts)); /* nothing of a longer one before */
}

static void what_no_page_could_show_safely_is_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct span value;
        const char *says;
    } bad[] = {
        {"title", SPAN("two\nlines"), "without line breaks"},
        {"title", SPAN("a\rb"), "at most 120 characters"},
        {"title", SPAN("a\0b"), "UTF-8"},
        {"title", SPAN("\x1b[31m"), "control characters"},
        {"title", SPAN("\x7f"), "control characters"},
        {"title", SPAN("\xc2\x85"), "control characters"},
        {"title", SPAN("\xff"), "UTF-8"},
        {"title", SPAN("\xc0\xaf"), "UTF-8"},
        {"title", SPAN("\xed\xa0\x80"), "UTF-8"},
        {"title", SPAN("\xf4\x90\x80\x80"), "UTF-8"},
        {"title", SPAN("cut \xea\xb0"), "UTF-8"},
        {"title", SPAN("\u202Egpj.exe\u202C"), "direction of writing"},
        {"title", SPAN("\u2066x\u2069"), "direction of writing"},
        {"title", SPAN("\u2069x"), "direction of writing"},
        {"title", SPAN("\u2028"), "line breaks"},
        {"message", SPAN("a\nb"), "at most 500 characters"},
        {"logo", SPAN("javascript:alert(1)"), "https://"},
        {"logo", SPAN("http://example.com/l.png"), "https://"},
        {"logo", SPAN("HTTPS://example.com/l.png"), "https://"},
        {"logo", SPAN("https://"), "https://"},
        {"logo", SPAN("https:///x"), "https://"},
        {"logo", SPAN("//evil.example/l.png"), "one /"},
        {"logo", SPAN("/\\evil.example/l.png"), "one /"},
        {"logo", SPAN("data:image/png;base64,AAAA"), "https://"},
        {"logo", SPAN("logo.png"), "one /"},
        {"logo", SPAN("/a b"), "one /"},
        {"logo", SPAN("/a\"b"), "one /"},
        {"logo", SPAN("/a\tb"), "one /"},
        {"logo", SPAN("/<x>"), "one /"},
        {"logo", SPAN("/로고"), "one /"},
        {"logo", SPAN("/a\0b"), "one /"},
        {"colour", SPAN("red"), "#rrggbb"},
        {"colour", SPAN("#fff"), "#rrggbb"},
        {"colour", SPAN("#00000g"), "#rrggbb"},
        {"colour",
         SPAN("#0000\0"
              "0"),
         "#rrggbb"},
        {"colour", SPAN("#0000000"), "#rrggbb"},
        {"colour", SPAN("0000000"), "#rrggbb"},
        {"lang", SPAN("KO"), "ko, en, ja, zh, es, de or fr"},
        {"lang", SPAN("xx"), "ko, en, ja, zh, es, de or fr"},
        {"lang", SPAN("ko-KR"), "ko, en, ja, zh, es, de or fr"},
    };
    struct texts texts = texts_longest(), before = texts;
    char reason[REASON];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (set_shown(&texts, bad[i].name, bad[i].value, reason))
            fail_msg("%s took value %zu", bad[i].name, i);
        assert_memory_equal(&texts, &before, sizeof(texts));
        assert_non_null(strstr(reason, bad[i].name));
        if (strstr(reason, bad[i].says) == NULL)
            fail_msg("of value %zu it says: %s", i, reason);
        for (const char *c = reason; *c != '\0'; c++)
            assert_true(*c >= ' ' && *c <= '~'); /* nothing of what was sent */
    }
}

static void a_text_has_so_many_characters_and_not_one_more(void **state)
{
    (void)state;
    struct texts texts = texts_longest(), before = texts;
    char reason[REASON], longer[8192];

    for (size_t i = setting_numbers; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        struct span most = setting_text(&before, info);
        assert_int_equal(most.len, info->bytes);
        assert_true(set_shown(&texts, info->name, most, reason));
        memcpy(longer, most.data, most.len);
        longer[most.len] = 'x';
        assert_false(set_shown(&texts, info->name, (struct span){longer, most.len + 1}, reason));
        assert_memory_equal(&texts, &before, sizeof(texts));
    }
    size_t huge = 10 << 20;
    char *bytes = malloc(huge);
    memset(bytes, '/', huge);
    for (size_t i = setting_numbers; i < setting_count; i++)
        assert_false(set_shown(&texts, setting_list[i].name, (struct span){bytes, huge}, reason));
    free(bytes);
    assert_memory_equal(&texts, &before, sizeof(texts));
}

static void a_wrong_text_changes_no_number_and_a_wrong_number_no_text(void **state)
{
    (void)state;
    struct settings settings = settings_default(), before = settings;
    struct texts texts = {.title = "as it was"}, texts_before = texts;
    struct setting_change changes[] = {
        {SPAN("rate"), SPAN("7")}, {SPAN("title"), SPAN("new")}, {SPAN("lang"), SPAN("xx")}};
    char reason[REASON];

    assert_false(settings_apply(&settings, &texts, changes, 3, reason, sizeof(reason)));
    changes[2] = (struct setting_change){SPAN("tier"), SPAN("9")};
    assert_false(settings_apply(&settings, &texts, changes, 3, reason, sizeof(reason)));
    changes[2] = (struct setting_change){SPAN("title"), SPAN("again")};
    assert_false(settings_apply(&settings, &texts, changes, 3, reason, sizeof(reason)));
    assert_memory_equal(&settings, &before, sizeof(settings));
    assert_memory_equal(&texts, &texts_before, sizeof(texts));
    assert_true(settings_apply(&settings, &texts, changes, 2, reason, sizeof(reason)));
    assert_string_equal(texts.title, "new");
    assert_int_equal(settings.rate_milli, 7000);
}

static void a_preset_leaves_the_texts_alone(void **state)
{
    (void)state;
    struct settings settings = settings_default();
    struct texts texts = {.title = "as it was", .lang = "de"};
    struct setting_change changes[] = {{SPAN("lang"), SPAN("ja")}, {SPAN("preset"), SPAN("hall")}};
    char reason[REASON];

    assert_true(settings_apply(&settings, &texts, changes, 2, reason, sizeof(reason)));
    assert_string_equal(texts.title, "as it was");
    assert_string_equal(texts.lang, "ja");
    assert_int_equal(settings.preset, PRESET_HALL);
}

static void texts_come_back_from_their_lines_alone(void **state)
{
    (void)state;
    struct texts longest = texts_longest(), none = {0}, read;
    char lines[SETTINGS_TEXT_MAX];
    size_t len = texts_to_text(&longest, lines);

    assert_true(texts_from_text(&read, (struct span){lines, len}));
    assert_memory_equal(&read, &longest, sizeof(read));
    len = texts_to_text(&none, lines);
    assert_true(len > 0);
    assert_true(texts_from_text(&read, (struct span){lines, len}));
    assert_memory_equal(&read, &none, sizeof(read));
    assert_true(texts_from_text(&read, SPAN("")));
    assert_memory_equal(&read, &none, sizeof(read));
    assert_true(texts_from_text(&read, SPAN("of_a_later_version=x\ntitle=here\n")));
    assert_string_equal(read.title, "here");
    assert_false(texts_from_text(&read, SPAN("title=a")));
    assert_false(texts_from_text(&read, SPAN("title")));
    assert_false(texts_from_text(&read, SPAN("rate=5\n")));
    assert_false(texts_from_text(&read, SPAN("lang=xx\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_within_its_range),
        cmocka_unit_test(what_is_written_is_read_back_as_the_same),
        cmocka_unit_test(what_is_out_of_range_or_no_number_is_refused_with_the_range),
        cmocka_unit_test(numbers_with_decimals_are_kept_in_thousandths),
        cmocka_unit_test(unknown_names_and_any_bytes_are_refused_without_harm),
        cmocka_unit_test(several_changes_are_all_or_none),
        cmocka_unit_test(nothing_is_named_twice_and_rate_and_batch_exclude_each_other),
        cmocka_unit_test(a_preset_comes_first_wherever_it_stands_and_what_is_named_wins),
        cmocka_unit_test(every_preset_is_as_the_contract_says),
        cmocka_unit_test(a_pace_that_follows_the_shop_needs_its_bounds_and_has_no_batch),
        cmocka_unit_test(all_settings_come_back_from_their_text),
        cmocka_unit_test(a_text_is_read_whole_or_refused),
        cmocka_unit_test(a_text_is_kept_as_it_was_written),
        cmocka_unit_test(what_no_page_could_show_safely_is_refused_and_named),
        cmocka_unit_test(a_text_has_so_many_characters_and_not_one_more),
        cmocka_unit_test(a_wrong_text_changes_no_number_and_a_wrong_number_no_text),
        cmocka_unit_test(a_preset_leaves_the_texts_alone),
        cmocka_unit_test(texts_come_back_from_their_lines_alone),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
