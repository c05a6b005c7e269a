/* A module that loads another one, named by KOEL_VALKEY_WRAPPED, and makes its allocations fail on demand. It passes on the
 * server's functions, except for those that allocate. So it works with any allocator of the server, and the server's own
 * allocations, whose failure would end it, never fail.
 *
 * The file named by KOEL_VALKEY_FAILING says which allocations fail. It is mapped, so that the test can change it while the
 * server runs, and the server's child processes see the changes. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct settings {
    _Atomic uint64_t least; /* The smallest size, in bytes, of allocations that may fail. */
    _Atomic uint64_t most;  /* The largest size; 0: none fails. */
    _Atomic uint64_t passed; /* How many of these still succeed. */
    _Atomic uint64_t failing; /* How many may fail after that. */
    _Atomic uint64_t chance; /* The probability that one of these fails, times 65536. */
    _Atomic uint64_t random; /* The state of the generator. */
    _Atomic uint64_t failed; /* How many have failed. */
};

static struct settings *settings;
static void *(*try_alloc)(size_t);
static void *(*try_calloc)(size_t, size_t);
static void *(*try_realloc)(void *, size_t);
static int (*get_api)(const char *, void *);

static int must_fail(size_t size) {
    if (size < settings->least || size > settings->most)
        return 0;
    if (settings->passed) {
        settings->passed--;
        return 0;
    }
    if (!settings->failing)
        return 0;
    settings->random = settings->random * 6364136223846793005u + 1442695040888963407u;
    if ((settings->random >> 48) >= settings->chance)
        return 0;
    settings->failing--;
    settings->failed++;
    return 1;
}

static void *alloc(size_t size) { return must_fail(size) ? NULL : try_alloc(size); }

static void *alloc_zeroed(size_t count, size_t size) { return must_fail(count * size) ? NULL : try_calloc(count, size); }

static void *resize(void *memory, size_t size) { return must_fail(size) ? NULL : try_realloc(memory, size); }

static int get(const char *name, void *function) {
    int result = get_api(name, function);
    void **pointer = function;
    if (result == 0 && !strcmp(name, "RedisModule_TryAlloc")) {
        try_alloc = *pointer;
        *pointer = alloc;
    } else if (result == 0 && !strcmp(name, "RedisModule_TryCalloc")) {
        try_calloc = *pointer;
        *pointer = alloc_zeroed;
    } else if (result == 0 && !strcmp(name, "RedisModule_TryRealloc")) {
        try_realloc = *pointer;
        *pointer = resize;
    }
    return result;
}

int RedisModule_OnLoad(void *context, void **arguments, int count) {
    int file = open(getenv("KOEL_VALKEY_FAILING"), O_RDWR);
    settings = mmap(NULL, sizeof *settings, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *module = dlopen(getenv("KOEL_VALKEY_WRAPPED"), RTLD_NOW | RTLD_LOCAL);
    if (file < 0 || settings == MAP_FAILED || !module)
        return 1;
    int (*load)(void *, void **, int) = (int (*)(void *, void **, int))dlsym(module, "RedisModule_OnLoad");
    /* A context begins with the function that looks up all others. */
    void **first = context;
    void *original = *first;
    get_api = (int (*)(const char *, void *))original;
    *first = (void *)get;
    int result = load(context, arguments, count);
    *first = original;
    return result;
}
