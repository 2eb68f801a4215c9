#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

template <typename Refusal = InvalidArgument, typename Change>
std::string refusal(Change change) {
  ToyModel model;
  auto builder = ParallelWrapper::Builder(model);
  change(builder);
  return thrown<Refusal>([&] { builder.build(); });
}

using Builder = ParallelWrapper::Builder;

}  // namespace

TEST_CASE("each option out of range is refused by name, with its value") {
  CHECK(refusal([](Builder& b) { b.workers(0); }) == "workers must be between 1 and 1024, got 0");
  CHECK(refusal([](Builder& b) { b.workers(-2); }) == "workers must be between 1 and 1024, got -2");
  CHECK(refusal([](Builder& b) { b.workers(1025); }) == "workers must be between 1 and 1024, got 1025");
  CHECK(refusal([](Builder& b) { b.averagingFrequency(0); }) ==
        "averagingFrequency must be at least 1, got 0");
  CHECK(refusal([](Builder& b) { b.averagingFrequency((std::int64_t{1} << 40) + 1); }) ==
        "averagingFrequency must be at most 1099511627776, got 1099511627777");
  CHECK(refusal([](Builder& b) { b.averagingFrequency(-1); }) ==
        "averagingFrequency must be at least 1, got -1");
  CHECK(refusal([](Builder& b) { b.prefetchBuffer(-1); }) ==
        "prefetchBuffer must be between 0 and 1048576 batches, got -1");
  CHECK(refusal([](Builder& b) { b.prefetchBuffer((1 << 20) + 1); }) ==
        "prefetchBuffer must be between 0 and 1048576 batches, got 1048577");
  CHECK(refusal([](Builder& b) { b.threadsPerWorker(0); }) ==
        "threadsPerWorker must be between 1 and 1024, got 0");
  CHECK(refusal([](Builder& b) { b.threadsPerWorker(1025); }) ==
        "threadsPerWorker must be between 1 and 1024, got 1025");
  CHECK(refusal([](Builder& b) { b.devices({}); }) == "devices: the list is empty");
  CHECK(refusal([](Builder& b) { b.listeners({nullptr}); }) == "listeners: one of them is null");
}

TEST_CASE("a listener given twice would be called twice: refused") {
  auto listener = std::make_shared<RecordingListener>();
  CHECK(refusal([&](Builder& b) {
          b.listeners({listener, listener});
        }) == "listeners: number 1 is number 0 again; each is called once");
}

TEST_CASE("a device that this build cannot use is refused") {
  CHECK(refusal<DeviceUnavailable>([](Builder& b) {
          b.devices({Device::cpu(), Device::cuda(1)});
        }) == "devices: cuda:1 cannot be used, this build has no CUDA");
}

TEST_CASE("the defaults, and what was asked for") {
  ToyModel model;
  const auto defaults = ParallelWrapper::Builder(model).build();
  CHECK(defaults.options().workers == 1);
  CHECK(defaults.options().averagingFrequency == 1);
  CHECK(defaults.options().averageUpdaters);
  CHECK(defaults.options().prefetchBuffer == 16);
  CHECK_FALSE(defaults.options().reportScoreAfterAveraging);
  CHECK(defaults.options().devices == std::vector<Device>{Device::cpu()});
  CHECK(defaults.options().threadsPerWorker == 1);
  CHECK(defaults.options().pinThreads);

  const auto wrapper = ParallelWrapper::Builder(model)
                           .workers(2)
                           .averagingFrequency(3)
                           .averageUpdaters(false)
                           .prefetchBuffer(24)
                           .reportScoreAfterAveraging(true)
                           .threadsPerWorker(2)
                           .pinThreads(false)
                           .build();
  CHECK(wrapper.options().workers == 2);
  CHECK(wrapper.options().averagingFrequency == 3);
  CHECK_FALSE(wrapper.options().averageUpdaters);
  CHECK(wrapper.options().prefetchBuffer == 24);
  CHECK(wrapper.options().reportScoreAfterAveraging);
  CHECK(wrapper.options().threadsPerWorker == 2);
  CHECK_FALSE(wrapper.options().pinThreads);
  CHECK(wrapper.plan() ==
        "2 workers on cpu (2 threads each, not pinned), averaging every 3 iterations: 6 batches a round");
}

TEST_CASE("a wrapper can be moved, also after it has trained") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 6});
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 2);
  auto moved = std::move(wrapper);
  moved.fit(data);  // from 2: {2} stays, {6} goes to 4
  CHECK(model.parameters()[0] == 3);
  moved = toyWrapper(model, 3).build();
  moved.fit(data);  // 2.5 and 4.5
  CHECK(model.parameters()[0] == 3.5f);
}

TEST_CASE("fit refuses a negative number of epochs, and takes none") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2});
  auto wrapper = toyWrapper(model, 2).build();
  CHECK(thrown<InvalidArgument>([&] { wrapper.fit(data, -1); }) == "fit: epochs cannot be negative, got -1");
  wrapper.fit(data, 0);
  CHECK(model.parameters()[0] == 0);
  CHECK(model.epoch() == 0);
  wrapper.fit(data);
  CHECK(model.epoch() == 1);
}
