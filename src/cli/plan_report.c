/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir plan`: the figures of plan.c with the formula behind each, so that whoever disagrees sees with what. The settings
 * to paste take the target as the number of slots: where the pace alone would fill the shop beyond it, the slots do not.
 */
#include "base/room_id.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/number.h"
#include "cli/plan.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Everything that was asked. */
struct question {
    struct plan_input input;
    uint64_t arrivals, position; /* 0 = not asked */
    const char *room;
};

static bool question_read(const struct args *args, struct question *question);
static void plan_print(const struct question *question, const struct plan *plan);
static int plan_print_json(const struct question *question, const struct plan *plan);

int plan_run(const struct args *args)
{
    struct question question;
    struct plan plan;
    const char *reason;

    if (args->count > 1)
        return say_usage("plan takes options, not \"%s\" (weir plan --help)", args->words[1]);
    if (!question_read(args, &question))
        return EXIT_USAGE;
    if (!plan_make(&question.input, &plan, &reason))
        return say_usage("%s", reason);
    if (args_has(args, OPTION_JSON))
        return plan_print_json(&question, &plan);
    plan_print(&question, &plan);
    return 0;
}

/* --- reading the question ----------------------------------------------------------------------------------------- */

/* One number of the question: how it is written, what it may be, where it goes. */
struct wanted {
    enum option option;
    size_t offset;
    bool (*read)(const char *text, uint64_t *out);
    uint64_t lowest, highest;
    const char *otherwise; /* when it is not given; NULL = it must be, "" = it is not asked */
    const char *allowed;
};

#define DECIMAL \
    number_read_milli, 1, 1000000000000, NULL, "a number from 0.001 to 1000000000 with up to three decimals"
#define SECONDS number_read_whole, 1, 86400
#define PEOPLE  number_read_whole, 1, 1000000000, "", "a whole number from 1 to 1000000000"

static const char seconds_allowed[] = "whole seconds from 1 to 86400";

static const struct wanted wanted_list[] = {
    {OPTION_CAPACITY, offsetof(struct question, input.capacity_milli), DECIMAL},
    {OPTION_REQUESTS, offsetof(struct question, input.requests_milli), DECIMAL},
    {OPTION_VISIT, offsetof(struct question, input.visit_sec), SECONDS, NULL, seconds_allowed},
    {OPTION_FAILURES, offsetof(struct question, input.failures), number_read_share, 0, SHARE_WHOLE, "0%",
     "a share from 0% to 100%, like 15% or 0.15"},
    {OPTION_TARGET, offsetof(struct question, input.target), number_read_share, 1, SHARE_WHOLE, "80%",
     "a share above 0% up to 100%, like 80% or 0.8"},
    {OPTION_EVERY, offsetof(struct question, input.every_sec), SECONDS, "10", seconds_allowed},
    {OPTION_ARRIVALS, offsetof(struct question, arrivals), PEOPLE},
    {OPTION_POSITION, offsetof(struct question, position), PEOPLE},
};

static bool number_wanted(const struct args *args, const struct wanted *wanted, uint64_t *out);

static bool question_read(const struct args *args, struct question *question)
{
    const char *room = args->values[OPTION_ROOM];

    *question = (struct question){.room = room == NULL ? "shop" : room};
    question->input.cautious = args_has(args, OPTION_CAUTIOUS);
    if (!room_id_is_valid(span_of(question->room)))
        return say_usage("--room must be 1 to 64 of A-Z a-z 0-9 _ . : -"), false;
    for (size_t i = 0; i < sizeof(wanted_list) / sizeof(wanted_list[0]); i++) {
        void *number = (char *)question + wanted_list[i].offset;
        if (!number_wanted(args, &wanted_list[i], number))
            return false;
    }
    return true;
}

static bool number_wanted(const struct args *args, const struct wanted *wanted, uint64_t *out)
{
    const char *name = option_list[wanted->option].written, *text = args->values[wanted->option];

    if (text == NULL && wanted->otherwise == NULL)
        return say_usage("plan needs --%s: %s (weir plan --help)", name, option_list[wanted->option].help),
               false;
    if (text == NULL && *wanted->otherwise == '\0')
        return true;
    if (text == NULL)
        text = wanted->otherwise;
    if (!wanted->read(text, out) || *out < wanted->lowest || *out > wanted->highest)
        return say_usage("--%s must be %s, not \"%s\"", name, wanted->allowed, text), false;
    return true;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

/* The inputs as they are shown in the formulas. */
struct shown {
    char capacity[NUMBER_TEXT_MAX], requests[NUMBER_TEXT_MAX], visit[NUMBER_TEXT_MAX], every[NUMBER_TEXT_MAX];
    char failures[NUMBER_TEXT_MAX], target[NUMBER_TEXT_MAX], share[NUMBER_TEXT_MAX],
        cost[NUMBER_TEXT_MAX * 2 + 8];
};

static void shown_make(const struct plan_input *input, struct shown *shown);
static void held_add(struct table *table, const struct plan *plan, const struct shown *shown, bool cautious);
static void period_add(struct table *table, const struct plan *plan, const struct shown *shown,
                       bool cautious);
static void pace_add(struct table *table, const struct plan *plan, const struct shown *shown, bool cautious);
static void waits_add(struct table *table, const struct question *question, const struct plan *plan);
static void warning_print(const struct question *question, const struct plan *plan);
static json_t *settings_json(const struct question *question, const struct plan *plan);

static void plan_print(const struct question *question, const struct plan *plan)
{
    static const struct column columns[] = {{"FIGURE", false}, {"VALUE", true}, {"", false}, {"HOW", false}};
    struct table *table = table_new(columns, 4);
    struct shown shown;

    shown_make(&question->input, &shown);
    printf("A shop that takes %s requests a second; a visit is %s requests over %s s, %s of them sent again; "
           "to be filled to %s.\n\n",
           shown.capacity, shown.requests, shown.visit, shown.failures, shown.target);
    held_add(table, plan, &shown, question->input.cautious);
    period_add(table, plan, &shown, question->input.cautious);
    pace_add(table, plan, &shown, question->input.cautious);
    waits_add(table, question, plan);
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
    if (plan->exceeds_target)
        warning_print(question, plan);
    printf("\nThe room, for nginx.conf or for PATCH rooms/%s:\n\n", question->room);
    printf("    weir_room %s max_active=%" PRIu64 " batch=%" PRIu64 " interval_sec=%" PRIu64 ";\n    ",
           question->room, plan->target, plan->batch, question->input.every_sec);
    api_print_json(settings_json(question, plan));
}

static void shown_make(const struct plan_input *input, struct shown *shown)
{
    char factor[NUMBER_TEXT_MAX];

    number_milli(input->capacity_milli, shown->capacity);
    number_milli(input->requests_milli, shown->requests);
    number_group(input->visit_sec, shown->visit);
    number_group(input->every_sec, shown->every);
    number_share(input->failures, shown->failures);
    number_share(input->target, shown->target);
    number_fraction(input->target, shown->share);
    number_fraction(SHARE_WHOLE + input->failures, factor);
    snprintf(shown->cost, sizeof(shown->cost), "(%s × %s)", shown->requests, factor);
}

static void row_add(struct table *table, const char *figure, const char *value, const char *unit,
                    const char *how, ...) __attribute__((format(printf, 5, 6)));

static void held_add(struct table *table, const struct plan *plan, const struct shown *shown, bool cautious)
{
    char a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX];

    row_add(table, "held at once", number_group(plan->held_exactly, a), "people",
            "capacity × visit / (requests × (1 + failures)) = %s × %s / %s", shown->capacity, shown->visit,
            shown->cost);
    if (cautious)
        row_add(table, "", number_group(plan->held, a), "people", "cut to the first digit");
    row_add(table, "target", number_group(plan->target, a), "people", "held at once × target = %s × %s",
            number_group(plan->held, b), shown->share);
}

static void period_add(struct table *table, const struct plan *plan, const struct shown *shown, bool cautious)
{
    char a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX];

    row_add(table, "period", number_milli(plan->period_milli_exactly, a), "s", "visit / target = %s / %s",
            shown->visit, shown->share);
    if (cautious)
        row_add(table, "", number_milli(plan->period_milli, a), "s", "cut to whole minutes");
    row_add(table, "per period", number_group(plan->per_period_exactly, a), "people",
            "capacity × period / (requests × (1 + failures)) = %s × %s / %s", shown->capacity,
            number_milli(plan->period_milli_exactly, b), shown->cost);
    if (cautious)
        row_add(table, "", number_group(plan->per_period, a), "people", "cut to the first digit");
}

static void pace_add(struct table *table, const struct plan *plan, const struct shown *shown, bool cautious)
{
    char a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX], c[NUMBER_TEXT_MAX];

    number_group(plan->per_period, b);
    number_milli(plan->period_milli, c);
    if (cautious)
        row_add(table, "per minute", number_group(plan->per_minute, a), "people",
                "per period / period × 60 = %s / %s × 60", b, c);
    row_add(table, "batch", number_group(plan->batch_unrounded, a), "people",
            "per period / period × every = %s / %s × %s", b, c, shown->every);
    if (cautious)
        row_add(table, "", number_group(plan->batch, a), "people",
                "rounded to two digits, never above the exact figure");
    number_group(plan->batch, b);
    row_add(table, "rate", number_milli(plan->rate_milli, a), "people/s", "batch / every = %s / %s", b,
            shown->every);
    row_add(table, "inside", number_group(plan->inside, a), "people", "batch × visit / every = %s × %s / %s",
            b, shown->visit, shown->every);
}

static void wait_add(struct table *table, const char *figure, uint64_t position,
                     const struct question *question, const struct plan *plan);

static void waits_add(struct table *table, const struct question *question, const struct plan *plan)
{
    if (question->position > 0)
        wait_add(table, "wait", question->position, question, plan);
    if (question->arrivals > 0)
        wait_add(table, "last called", question->arrivals, question, plan);
}

static void wait_add(struct table *table, const char *figure, uint64_t position,
                     const struct question *question, const struct plan *plan)
{
    char a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX], c[NUMBER_TEXT_MAX], d[NUMBER_TEXT_MAX];
    uint64_t wait_sec = plan_wait_sec(position, plan->batch, question->input.every_sec);

    row_add(table, figure, number_group(wait_sec, a), "s",
            "%s: ceil(position / batch) × every = ceil(%s / %s) × %" PRIu64, number_duration(wait_sec, d),
            number_group(position, b), number_group(plan->batch, c), question->input.every_sec);
}

static void row_add(struct table *table, const char *figure, const char *value, const char *unit,
                    const char *how, ...)
{
    char text[512];
    va_list values;

    va_start(values, how);
    vsnprintf(text, sizeof(text), how, values);
    va_end(values);
    table_add(table, figure);
    table_add(table, value);
    table_add(table, unit);
    table_add(table, text);
}

static void warning_print(const struct question *question, const struct plan *plan)
{
    bool with_colour = text_may_colour(stdout);
    char batch[NUMBER_TEXT_MAX], inside[NUMBER_TEXT_MAX], target[NUMBER_TEXT_MAX], keeping[NUMBER_TEXT_MAX];

    printf("\n%sWarning:%s %s every %" PRIu64
           " s holds %s people inside, over the target of %s; %s every %" PRIu64 " s keeps it.\n",
           with_colour ? "\033[1;33m" : "", with_colour ? "\033[0m" : "", number_group(plan->batch, batch),
           question->input.every_sec, number_group(plan->inside, inside), number_group(plan->target, target),
           number_group(plan->keeping_batch, keeping), question->input.every_sec);
    printf("As the room below has no more slots than the target, it then calls only as people leave.\n");
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct question *question, const struct plan *plan)
{
    return say_no_memory_if_null(json_pack("{s:I,s:I,s:I}", "max_active", (json_int_t)plan->target, "batch",
                                           (json_int_t)plan->batch, "interval_sec",
                                           (json_int_t)question->input.every_sec));
}

static void waits_json(json_t *json, const struct question *question, const struct plan *plan);

static int plan_print_json(const struct question *question, const struct plan *plan)
{
    json_t *json =
        json_pack("{s:I,s:I,s:I,s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:b,s:I,s:o}", "held_exactly",
                  (json_int_t)plan->held_exactly, "held", (json_int_t)plan->held, "target",
                  (json_int_t)plan->target, "period_sec_exactly", (double)plan->period_milli_exactly / 1000,
                  "period_sec", (double)plan->period_milli / 1000, "per_period_exactly",
                  (json_int_t)plan->per_period_exactly, "per_period", (json_int_t)plan->per_period,
                  "per_minute", (json_int_t)plan->per_minute, "batch_exactly",
                  (json_int_t)plan->batch_exactly, "batch_unrounded", (json_int_t)plan->batch_unrounded,
                  "batch", (json_int_t)plan->batch, "rate", (double)plan->rate_milli / 1000, "inside",
                  (json_int_t)plan->inside, "exceeds_target", (int)plan->exceeds_target, "keeping_batch",
                  (json_int_t)plan->keeping_batch, "settings", settings_json(question, plan));

    say_no_memory_if_null(json);
    waits_json(json, question, plan);
    return api_print_json(json);
}

static void waits_json(json_t *json, const struct question *question, const struct plan *plan)
{
    uint64_t every_sec = question->input.every_sec;

    if (question->position > 0)
        json_object_set_new(
            json, "wait_sec",
            json_integer((json_int_t)plan_wait_sec(question->position, plan->batch, every_sec)));
    if (question->arrivals > 0)
        json_object_set_new(
            json, "last_called_sec",
            json_integer((json_int_t)plan_wait_sec(question->arrivals, plan->batch, every_sec)));
}
