/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir`: the operator's command. The commands are a table; help, the check of options and the dispatch all read it, so a
 * new command is a row here and a function in a file of its own.
 */
#include "base/version.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/say.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    unsigned options; /* bits of option_for */
    int (*run)(const struct args *args);
    const char *usage; /* one line a form */
    const char *summary;
};

static int help_run(const struct args *args);

static const struct command commands[] = {
    {"plan", FOR_PLAN, plan_run, "weir plan --capacity N --requests N --visit SECONDS [OPTION …]\n",
     "how many the shop can hold, and the pace that follows"},
    {"rooms", FOR_SERVER, rooms_run, "weir rooms\n", "all rooms in a table"},
    {"room", FOR_SERVER, room_run,
     "weir room ID                      its figures and settings\n"
     "weir room ID set NAME=VALUE …     change settings; NAME= goes back to the default\n"
     "weir room ID queue                call people at the room's pace\n"
     "weir room ID hold                 let people join, call nobody\n"
     "weir room ID open                 call everybody at once\n"
     "weir room ID close                refuse joins\n"
     "weir room ID advance N            call the next N now\n"
     "weir room ID clear                send everybody away, in line and inside\n"
     "weir room ID delete               remove the room\n",
     "one room: look at it, change it"},
    {"ticket", FOR_SERVER, ticket_run,
     "weir ticket show TOKEN\n"
     "weir ticket show -                the token comes on stdin, out of the shell's history\n",
     "what the server knows of a ticket or a pass"},
    {"top", FOR_SERVER | FOR_TOP, top_run, "weir top\n", "a live screen of all rooms; q ends it"},
    {"journal", FOR_JOURNAL, journal_run,
     "weir journal verify PATH          is it whole? and the state that it stands for\n"
     "weir journal show PATH [OPTION …] its records, one a line\n"
     "weir journal stat PATH            how much of what is in it\n",
     "what is in the folder of weir_journal"},
    {"key", FOR_KEY, key_run,
     "weir key show FILE                the keys of a secret file: ids, and what each is for; no secrets\n"
     "weir key export FILE --tier N     what a service verifies passes with; --json as a JWK Set\n"
     "weir key rotate FILE              puts a new key in front; the old ones go on verifying\n",
     "the secret file: look at it, rotate it, give a service its key"},
    {"pass", FOR_PASS, pass_run,
     "weir pass mint FILE --room ID     a pass of the keys in a secret file, for tests\n"
     "weir pass verify FILE TOKEN       what is in a pass, or why it is refused\n"
     "weir pass verify FILE -           the pass comes on stdin, out of the shell's history\n",
     "make or check a pass, without a server"},
    {"redis", FOR_REDIS, redis_run,
     "weir redis check URL              which servers keep the rooms, what of, and what is set up badly\n"
     "weir redis check                  the same of WEIR_STORE, out of `ps` and the shell's history\n",
     "what is in the Redis of weir_store, and how it is set up"},
    {"help", FOR_NONE, help_run, "weir help [COMMAND]\n", "this list, or how one command is used"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name);
static int command_run(const struct command *command, const struct args *args);
static int help_print(void);
static int command_help_print(const struct command *command);
static int output_finish(int exit_code);

int main(int argc, char *argv[])
{
    const struct command *command;
    struct args args;
    char reason[512];

    /* For the width of letters; nothing else of a locale is wanted. */
    setlocale(LC_CTYPE, "C.UTF-8");
    if (!args_read(argc, argv, &args, reason, sizeof(reason)))
        return say_usage("%s (weir help)", reason);
    if (args_has(&args, OPTION_VERSION))
        return output_finish(printf("weir " WEIR_VERSION "\n") < 0);
    if (args.count == 0)
        return args_has(&args, OPTION_HELP) ? output_finish(help_print())
                                            : say_usage("which command? (weir help lists them)");
    command = command_find(args.words[0]);
    if (command == NULL)
        return say_usage("there is no command \"%s\" (weir help lists them)", args.words[0]);
    return output_finish(command_run(command, &args));
}

static int command_run(const struct command *command, const struct args *args)
{
    char reason[512];

    if (args_has(args, OPTION_HELP))
        return command_help_print(command);
    if (!args_suit(args, command->options, reason, sizeof(reason)))
        return say_usage("%s (weir %s --help)", reason, command->name);
    return command->run(args);
}

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int help_run(const struct args *args)
{
    const struct command *command = args->count == 2 ? command_find(args->words[1]) : NULL;

    if (args->count == 1)
        return help_print();
    if (command == NULL)
        return say_usage("there is no help for that (weir help lists the commands)");
    return command_help_print(command);
}

static int help_print(void)
{
    puts("weir: the operator's side of the waiting room\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  weir %-8s %s\n", commands[i].name, commands[i].summary);
    puts("\nEach command says more with --help, and prints JSON with --json. weir --version says which "
         "version this is.\n"
         "The server is WEIR_URL (http://127.0.0.1:8000 if unset); the file with the admin token is "
         "WEIR_TOKEN_FILE.");
    return 0;
}

static int command_help_print(const struct command *command)
{
    printf("%s\n%s\n", command->summary, command->usage);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_info *option = &option_list[i];
        const char *placeholder = option->placeholder == NULL ? "" : option->placeholder;
        if ((option->commands & command->options) != 0)
            printf("  --%s %-*s %s\n", option->written, 18 - (int)strlen(option->written), placeholder,
                   option->help);
    }
    return 0;
}

/* A full disk is a failure too: what was not written was not said. */
static int output_finish(int exit_code)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return say_refused("cannot write the output");
    return exit_code;
}
