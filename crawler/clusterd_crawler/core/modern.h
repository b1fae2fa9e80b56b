/* What runs for each character is compiled twice: for every x86-64 processor, and for those with BMI2 (since about 2013),
 * which shift by any number, and count the zeros of one, in an instruction: a fifteenth less time. The module chooses when
 * it is loaded, or is told to (`_core.set_modern`).
 *
 * `static MODERN int f_modern(int x) { return f(x); }` is the second of the two, with all that `f` calls.
 */
#ifndef CLUSTERD_MODERN_H
#define CLUSTERD_MODERN_H

#if defined(__x86_64__) && defined(__GNUC__)
#define MODERN __attribute__((flatten, target("bmi,bmi2")))
#define IS_MODERN (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
#else
#define MODERN
#define IS_MODERN 0
#endif

static int modern;

#endif
