/*
 * An addon of Node that is loaded where a process goes on from a saved state: OpenSSL's generators take a new seed from the
 * kernel, whose generator has one of its own by then. Those of threads are seeded by the primary one, and notice that it has
 * changed before they give the next number (NIST SP 800-90A, 8.6; EVP_RAND_reseed(3)). JavaScript has no way to ask for it.
 */
#include <stddef.h>

extern void *RAND_get0_primary(void *context);
extern int EVP_RAND_reseed(void *generator, int prediction_resistance, const unsigned char *entropy, size_t entropy_length,
                           const unsigned char *added, size_t added_length);
extern void abort(void) __attribute__((noreturn));

__attribute__((visibility("default"))) void *napi_register_module_v1(void *environment, void *exports) {
    (void)environment;
    void *primary = RAND_get0_primary(NULL);
    /* A process that would draw the numbers of another machine must not go on. */
    if (primary == NULL || EVP_RAND_reseed(primary, 1, NULL, 0, NULL, 0) != 1) abort();
    return exports;
}
