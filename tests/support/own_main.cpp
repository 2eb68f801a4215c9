// A program with a main of its own, as tests start them, may use what is for tests: it links
// muster_test_support, but not muster_test_main.

#include "tests/support/thrown.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler([](const doctest::AssertData& assert) {
    if (assert.m_failed) std::exit(1);
  });
  CHECK_REFUSED(muster::require(false, "batch: {}", 3), "batch: 3");
}
