#include "muster/parallel/training/fit_run.h"

#include <new>

#include "muster/parallel/training/named_call.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

std::exception_ptr causeOf(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

TEST_CASE("the first failure is thrown, with its place, worker and cause; later ones are dropped") {
  FirstFailure failure;
  CHECK_FALSE(failure);
  failure.rethrow();
  failure.set(2, causeOf("no more data"), [] { return "worker 2 failed in batch 4"; });
  failure.set(0, causeOf("something else"), [] { return "worker 0 failed"; });
  CHECK(failure);
  try {
    failure.rethrow();
    FAIL("it throws nothing");
  } catch (const TrainingError& error) {
    CHECK(std::string(error.what()) == "worker 2 failed in batch 4: no more data");
    CHECK(error.worker() == 2);
    CHECK(thrown<std::runtime_error>([&] { std::rethrow_exception(error.cause()); }) == "no more data");
  }
}

TEST_CASE("if the place cannot be told, the cause alone is thrown") {
  FirstFailure failure;
  failure.set(1, causeOf("no more data"), []() -> std::string { throw std::bad_alloc(); });
  CHECK(failure);
  CHECK(thrown<std::runtime_error>([&] { failure.rethrow(); }) == "no more data");
}

TEST_CASE("a call by name passes errors and shortages on, and names other exceptions") {
  CHECK(callStrategy("begin", [] { return 3; }) == 3);
  CHECK(thrown<InvalidArgument>([] {
          callStrategy("begin", [] { throw InvalidArgument("rate: 2 is too large"); });
        }) == "rate: 2 is too large");
  CHECK_THROWS_AS(callStrategy("begin", [] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(thrown<TrainingError>([] {
          callIterator("report its size", [] { throw std::runtime_error("disk"); });
        }) == "the data iterator failed to report its size: disk");
  CHECK(thrown<TrainingError>([] {
          callStrategy("plan", [] { throw 3; });
        }).starts_with("the strategy failed to plan: "));
}
