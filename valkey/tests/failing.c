/* A module that loads another one, the one that KOEL_VALKEY_WRAPPED names, and makes its allocations fail on demand. It hands on
 * the server's functions, but for those that allocate: so it works whatever allocator the server has, and fails nothing of the
 * server's own, which ends for want of memory.
 *
 * The file that KOEL_VALKEY_FAILING names says which ones: it is mapped, so that the test changes it while the server runs, and
 * the server's children see it, too. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct orders {
    _Atomic uint64_t least; /* Only allocations of so many bytes or more are meant. */
    _Atomic uint64_t most;  /* And of so many at most; 0: none fails. */
    _Atomic uint64_t passed; /* So many of them succeed first. */
    _Atomic uint64_t failing; /* So many then may fail. */
    _Atomic uint64_t chance; /* Of 65536 of these, so many do fail. */
    _Atomic uint64_t random; /* The state of the generator. */
    _Atomic uint64_t failed; /* So many have failed. */
};

static struct orders *orders;
static void *(*try_alloc)(size_t);
static void *(*try_calloc)(size_t, size_t);
static void *(*try_realloc)(void *, size_t);
static int (*get_api)(const char *, void *);

static int fails(size_t size) {
    if (size < orders->least || size > orders->most)
        return 0;
    if (orders->passed) {
        orders->passed--;
        return 0;
    }
    if (!orders->failing)
        return 0;
    orders->random = orders->random * 6364136223846793005u + 1442695040888963407u;
    if ((orders->random >> 48) >= orders->chance)
        return 0;
    orders->failing--;
    orders->failed++;
    return 1;
}

static void *alloc(size_t size) { return fails(size) ? NULL : try_alloc(size); }

static void *zeroed(size_t count, size_t size) { return fails(count * size) ? NULL : try_calloc(count, size); }

static void *resized(void *memory, size_t size) { return fails(size) ? NULL : try_realloc(memory, size); }

static int get(const char *name, void *function) {
    int result = get_api(name, function);
    void **pointer = function;
    if (result == 0 && !strcmp(name, "RedisModule_TryAlloc")) {
        try_alloc = *pointer;
        *pointer = alloc;
    } else if (result == 0 && !strcmp(name, "RedisModule_TryCalloc")) {
        try_calloc = *pointer;
        *pointer = zeroed;
    } else if (result == 0 && !strcmp(name, "RedisModule_TryRealloc")) {
        try_realloc = *pointer;
        *pointer = resized;
    }
    return result;
}

int RedisModule_OnLoad(void *context, void **arguments, int count) {
    int file = open(getenv("KOEL_VALKEY_FAILING"), O_RDWR);
    orders = mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *module = dlopen(getenv("KOEL_VALKEY_WRAPPED"), RTLD_NOW | RTLD_LOCAL);
    if (file < 0 || orders == MAP_FAILED || !module)
        return 1;
    int (*load)(void *, void **, int) = (int (*)(void *, void **, int))dlsym(module, "RedisModule_OnLoad");
    /* A context begins with the function that finds all others. */
    void **first = context;
    void *original = *first;
    get_api = (int (*)(const char *, void *))original;
    *first = (void *)get;
    int result = load(context, arguments, count);
    *first = original;
    return result;
}
