"""The Gibbs samplers: the paper's reference steps, and the engine with Newton proposals.

Rules for compiled code, here and in every other folder, because a new user waits for all of it.

1. One function, one signature. A slice of columns, ``terms[:, start:stop]``, has another layout
   than the array, and every function that takes it is compiled once more: pass the array and the
   first column.
2. A constant as an argument is a type of its own to numba: ``move(1)`` and ``move(2)`` are two
   functions; a loop over both makes one.
3. A function that another calls is compiled by itself, with all that it calls, and again inside
   each of its callers. Where there is one caller it is ``inlined``; where there are several calls
   of something long, a loop with one call is better than two calls.
4. Loops, not expressions of whole arrays: ``a + (b - c) * (d / e)``, ``np.any``, ``np.quantile``
   and the like pull in dozens of numba's own functions, which are compiled with every caller.
5. No text in a kernel: formatting an error compiles more than the kernel. Return a number. Copying
   one array into another, ``a[:] = b`` or ``a[0] = b``, has such a text inside: write the loop.
6. Do in numpy what is done once per table.
7. numba looks for changes in a function's own file only. After a change to a function that another
   file calls, delete the cached files of the callers.
"""
