/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target is this one function; it aborts when something that must hold does not. With clang
 * it is linked with libFuzzer, else with driver.c, which takes the same arguments.
 */
#ifndef HEARTH_TESTS_FUZZ_H
#define HEARTH_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
