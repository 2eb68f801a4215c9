#pragma once

#include <version>

// Settings that change the standard library's types. A program whose settings differ from the library's would
// not link, with long messages about vectors and strings. CMake defines MUSTER_BUILT_WITH_... for programs
// where the library itself was built so.

#if __cplusplus < 202002L
#error \
    "muster needs C++20: compile with -std=c++20 (in CMake: target_compile_features(program PRIVATE cxx_std_20))"
#endif

#if defined(_GLIBCXX_DEBUG) && !defined(MUSTER_BUILT_WITH_GLIBCXX_DEBUG)
#error \
    "_GLIBCXX_DEBUG changes std::vector, and muster was built without it: use _GLIBCXX_ASSERTIONS, or build muster with -D_GLIBCXX_DEBUG, too"
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI && !defined(MUSTER_BUILT_WITH_OLD_STRINGS)
#error \
    "_GLIBCXX_USE_CXX11_ABI=0 changes std::string, and muster was built without it: leave it out, or build muster with it, too"
#endif

#if defined(_LIBCPP_VERSION) && !defined(MUSTER_BUILT_WITH_LIBCXX)
#error \
    "libc++ is not the standard library that muster was built with: leave out -stdlib=libc++, or build muster with it, too"
#endif
