// Cases that end in every possible way, for report_test.py. Their output is made up.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "tests/support/skip.h"

// Whether the environment variable REPORT_SAMPLE contains this word: one program serves as several.
static bool is(const char* kind) {
  const char* const given = std::getenv("REPORT_SAMPLE");
  return given != nullptr && std::string(given).find(kind) != std::string::npos;
}

TEST_CASE("works<gpu>") {
  CHECK(true);
}

TEST_CASE("works, in a way<gpu, tf32>") {
  if (is("lost")) FAIL("this process cannot use the device any more");
  CHECK(true);
}

TEST_CASE("ends badly<gpu>") {
  if (is("crash")) std::raise(SIGSEGV);
  if (is("killed")) std::raise(SIGKILL);
  if (is("hang")) std::this_thread::sleep_for(std::chrono::hours(1));
  if (is("exit")) std::_Exit(5);
  if (is("slow")) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (is("fail")) CHECK_MESSAGE(false, "two and two are five");
}

TEST_CASE("needs two<gpu>") {
  return muster::test::skip("one GPU, two are needed");
}

TEST_CASE("comes last<gpu>") {
  CHECK(true);
}

TEST_CASE("is not asked for") {
  CHECK(false);
}
