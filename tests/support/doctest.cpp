// The implementation of doctest, for test programs and for programs that tests start.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
