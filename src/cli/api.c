/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcurl does HTTP and TLS. What is decided here is how little the other side is trusted: an answer may be late, endless,
 * not JSON or not an object, and each of these is one sentence. Redirects are not followed and proxies of the environment
 * not used: both would carry the admin token to a host that nobody named.
 */
#include "cli/api.h"

#include "cli/say.h"
#include "cli/token_file.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL   "http://127.0.0.1:8000"
#define API_PREFIX    "/weir/api/"
#define JSON_AS_TYPED (JSON_COMPACT | JSON_REAL_PRECISION(15))

struct answer {
    char *data;
    size_t len, held;
    bool is_too_large;
};

struct api {
    char *url;
    CURL *curl;
    struct curl_slist *headers;
    bool (*is_over)(void *context);
    void *context;
    char reason[API_REASON_MAX];
};

static bool url_is_usable(const char *url);
static void api_connect(struct api *api, const char *token);
static bool api_exchange(struct api *api, const char *method, const char *path, char *body,
                         struct answer *answer);
static json_t *api_judge(struct api *api, const struct answer *answer);
static void api_explain(struct api *api, CURLcode code, const struct answer *answer);
static size_t on_data(char *data, size_t one, size_t len, void *context);
static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d);

struct api *api_new(const struct args *args, int *exit_code)
{
    const char *url = args->values[OPTION_URL];
    char token[TOKEN_MAX + 1];
    struct api *api;

    if (url == NULL)
        url = getenv("WEIR_URL");
    if (url == NULL || *url == '\0')
        url = DEFAULT_URL;
    if (!url_is_usable(url)) {
        *exit_code = say_usage(
            "\"%s\" is not the address of a server: http://HOST[:PORT] or https://HOST[:PORT]", url);
        return NULL;
    }
    *exit_code = token_file_read(args->values[OPTION_TOKEN_FILE], token);
    if (*exit_code != 0)
        return NULL;
    api = say_no_memory_if_null(calloc(1, sizeof(*api)));
    api->url = say_no_memory_if_null(strdup(url));
    while (api->url[strlen(api->url) - 1] == '/')
        api->url[strlen(api->url) - 1] = '\0';
    api_connect(api, token);
    explicit_bzero(token, sizeof(token));
    return api;
}

void api_free(struct api *api)
{
    curl_easy_cleanup(api->curl);
    curl_slist_free_all(api->headers);
    curl_global_cleanup();
    free(api->url);
    free(api);
}

json_t *api_call(struct api *api, const char *method, const char *path, json_t *body)
{
    char *text = body == NULL ? NULL : say_no_memory_if_null(json_dumps(body, JSON_AS_TYPED));
    struct answer answer = {0};
    json_t *json = NULL;

    json_decref(body);
    if (api_exchange(api, method, path, text, &answer))
        json = api_judge(api, &answer);
    free(answer.data);
    free(text);
    return json;
}

const char *api_reason(const struct api *api)
{
    return api->reason;
}

const char *api_url(const struct api *api)
{
    return api->url;
}

void api_set_interrupt(struct api *api, bool (*is_over)(void *context), void *context)
{
    api->is_over = is_over;
    api->context = context;
}

int api_say_strange(const struct api *api)
{
    return say_refused("%s sent an answer that this command does not understand", api->url);
}

int api_print_json(json_t *json)
{
    char *text = say_no_memory_if_null(json_dumps(json, JSON_AS_TYPED | JSON_ENSURE_ASCII));

    puts(text);
    free(text);
    json_decref(json);
    return 0;
}

/* The host must be there, and nothing that the path of a call could not follow. */
static bool url_is_usable(const char *url)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : "";

    return *host != '\0' && *host != '/' && strpbrk(host, "?#@ \t\r\n") == NULL;
}

static void api_connect(struct api *api, const char *token)
{
    char header[TOKEN_MAX + 32];

    curl_global_init(CURL_GLOBAL_DEFAULT);
    api->curl = say_no_memory_if_null(curl_easy_init());
    snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
    api->headers = say_no_memory_if_null(curl_slist_append(NULL, header));
    explicit_bzero(header, sizeof(header));
    say_no_memory_if_null(curl_slist_append(api->headers, "Content-Type: application/json"));
    say_no_memory_if_null(curl_slist_append(api->headers, "Expect:"));
    curl_easy_setopt(api->curl, CURLOPT_HTTPHEADER, api->headers);
    curl_easy_setopt(api->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(api->curl, CURLOPT_TIMEOUT, (long)API_TIMEOUT_SEC);
    curl_easy_setopt(api->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(api->curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(api->curl, CURLOPT_USERAGENT, "weir");
    curl_easy_setopt(api->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(api->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(api->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(api->curl, CURLOPT_XFERINFODATA, api);
}

static bool api_exchange(struct api *api, const char *method, const char *path, char *body,
                         struct answer *answer)
{
    size_t size = strlen(api->url) + sizeof(API_PREFIX) + strlen(path);
    char *url = say_no_memory_if_null(malloc(size));
    CURLcode code;

    snprintf(url, size, "%s" API_PREFIX "%s", api->url, path);
    curl_easy_setopt(api->curl, CURLOPT_URL, url);
    if (body == NULL)
        curl_easy_setopt(api->curl, CURLOPT_HTTPGET, 1L);
    else
        curl_easy_setopt(api->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(api->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(api->curl, CURLOPT_WRITEDATA, answer);
    code = curl_easy_perform(api->curl);
    free(url);
    if (code != CURLE_OK)
        api_explain(api, code, answer);
    return code == CURLE_OK;
}

static void api_explain(struct api *api, CURLcode code, const struct answer *answer)
{
    if (answer->is_too_large)
        snprintf(api->reason, sizeof(api->reason), "the answer of %s is larger than %u MiB", api->url,
                 API_ANSWER_MAX >> 20);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        snprintf(api->reason, sizeof(api->reason), "%s did not answer within %d s", api->url,
                 API_TIMEOUT_SEC);
    else
        snprintf(api->reason, sizeof(api->reason), "cannot reach %s: %s", api->url, curl_easy_strerror(code));
}

/* The answer's object where the call succeeded; where it did not, what the server says about it. */
static json_t *api_judge(struct api *api, const struct answer *answer)
{
    long status = 0;
    json_t *json =
        json_loadb(answer->len == 0 ? "" : answer->data, answer->len, JSON_REJECT_DUPLICATES, NULL);
    const char *code = NULL, *message = NULL;

    curl_easy_getinfo(api->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300 && json_is_object(json))
        return json;
    if (status >= 200 && status < 300)
        snprintf(api->reason, sizeof(api->reason),
                 "%s did not answer with a JSON object: is this a Weir server?", api->url);
    else if (json_unpack(json, "{s:{s:s,s:s}}", "error", "code", &code, "message", &message) == 0)
        snprintf(api->reason, sizeof(api->reason), "%.500s (%.64s)", message, code);
    else
        snprintf(api->reason, sizeof(api->reason), "%s answered with HTTP status %ld and no explanation",
                 api->url, status);
    json_decref(json);
    return NULL;
}

static size_t on_data(char *data, size_t one, size_t len, void *context)
{
    struct answer *answer = context;

    len *= one;
    answer->is_too_large = len > API_ANSWER_MAX - answer->len;
    if (answer->is_too_large)
        return 0;
    if (answer->held < answer->len + len) {
        answer->held = 2 * (answer->len + len);
        answer->data = say_no_memory_if_null(realloc(answer->data, answer->held));
    }
    memcpy(answer->data + answer->len, data, len);
    answer->len += len;
    return len;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct api *api = context;

    (void)a, (void)b, (void)c, (void)d;
    return api->is_over != NULL && api->is_over(api->context);
}
