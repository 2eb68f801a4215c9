#pragma once

// GCC defines a macro for each sanitizer, Clang 16 does not: it has __has_feature.
#if defined(__SANITIZE_ADDRESS__)
#define MUSTER_TEST_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define MUSTER_TEST_THREAD_SANITIZER
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_TEST_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define MUSTER_TEST_THREAD_SANITIZER
#endif
#endif

namespace muster::test {

#if defined(MUSTER_TEST_ADDRESS_SANITIZER)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(MUSTER_TEST_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether a sanitizer slows this program and takes address space.
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace muster::test
