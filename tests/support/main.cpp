#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "tests/support/skip.h"

namespace muster::test {
namespace {
std::atomic<int> skipped{0};
std::atomic<int> ran{0};
std::string whySkipped;  // the running case; "": it is not

/// Appends a line to the file MUSTER_TEST_LOG, where that is set, for scripts that count cases
/// (tests/gpu/report.sh): fields between tabs. It is on the disk before the case goes on, which may crash.
template <typename... Fields>
void log(const Fields&... fields) {
  const char* const file = std::getenv("MUSTER_TEST_LOG");
  if (file == nullptr) return;
  std::ofstream out(file, std::ios::app);
  ((out << fields << '\t'), ...) << std::endl;
}

/// Counts the cases that ran, so that main can tell whether all of them were skipped, and logs them.
struct CountingListener : doctest::IReporter {
  explicit CountingListener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& data) override {
    ++ran;
    name_ = data.m_name;
    whySkipped.clear();
    log("started", name_);
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    const char* const outcome = !stats.testCaseSuccess ? "failed" : whySkipped.empty() ? "passed" : "skipped";
    log(outcome, name_, stats.seconds, whySkipped);
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::string name_;
};
REGISTER_LISTENER("counting", 1, CountingListener);
}  // namespace

void skip(std::string_view reason) {
  ++skipped;
  whySkipped = reason;
  std::cout << "skipped: " << reason << std::endl;
}

const char* realDataDir() {
  return std::getenv("MUSTER_DATA_DIR");
}

}  // namespace muster::test

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  muster::test::log("finished");
  const bool allSkipped = muster::test::skipped > 0 && muster::test::skipped == muster::test::ran;
  return result == 0 && allSkipped && !context.shouldExit() ? 77 : result;
}
