#include <doctest/doctest.h>

#include "muster/core/listeners/progress_listener.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"
#include "tests/support/standard.h"

namespace muster::test {
namespace {
std::atomic<int> skipped{0};
int ran = 0;

/// Counts the cases that ran, so that main knows whether all were skipped.
struct CountingListener : doctest::IReporter {
  explicit CountingListener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override { ++ran; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counting", 1, CountingListener);
}  // namespace

void skip(std::string_view reason) {
  ++skipped;
  MESSAGE("skipped: " << reason);  // tests/gpu/report/cases.py reads it
}

const char* realDataDir() {
  return std::getenv("MUSTER_DATA_DIR");
}

}  // namespace muster::test

#ifdef MUSTER_TEST_ADDRESS_SANITIZER
/// LLVM's OpenMP frees some memory of its threads never.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libomp\n";
}
#endif

int main(int argc, char** argv) {
  muster::showProgress(false);
  doctest::Context context(argc, argv);
  const int result = context.run();
  const bool allSkipped = muster::test::skipped > 0 && muster::test::skipped == muster::test::ran;
  return result == 0 && allSkipped && !context.shouldExit() ? 77 : result;
}
