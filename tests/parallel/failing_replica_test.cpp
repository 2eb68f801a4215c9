#include "tests/support/failure.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a replica that cannot be constructed ends fit() with its exception") {
  for (const int number : {0, 1, 2}) {
    ToyModel model;
    model.control().onReplicate = [&](int n) {
      if (n == number) boom();
    };
    auto data = twosAndSixes();
    auto wrapper = toyWrapper(model, 3).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.text == fmt::format("worker {} on cpu could not be made: boom", failure.worker));
    CHECK(failure.worker >= 0);
    CHECK(failure.worker < 3);
    CHECK(model.control().steps().empty());
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("replicas that are not copies of the model are refused") {
  const auto refusalOf = [](auto change) {
    ToyModel model;
    change(model.control());
    auto data = twosAndSixes();
    auto wrapper = toyWrapper(model, 2).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(model.control().steps().empty());
    model.control().replicateNothing = model.control().shareMemory = false;
    model.control().replicaSize = 0;
    checkTrainsAgain(wrapper, model);
    return failure.text;
  };
  CHECK(refusalOf([](ToyControl& c) { c.replicateNothing = true; }) ==
        "worker 0 on cpu could not be made: the model's replicate() returned nothing");
  CHECK(refusalOf([](ToyControl& c) { c.replicaSize = 40; }) ==
        "worker 0 on cpu could not be made: its block parameters, float32 [48] on cpu, differs from the "
        "model's parameters, float32 [16] on cpu");
  // Otherwise all workers would train the same array without an error.
  CHECK(refusalOf([](ToyControl& c) { c.shareMemory = true; }) ==
        "worker 0 on cpu could not be made: its block parameters shares memory with the model's; "
        "replicate() must "
        "make a copy");
}
