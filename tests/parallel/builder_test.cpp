#include <typeinfo>

#include "muster/core/device/math_mode.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/training_mode.h"
#include "tests/support/recording_listener.h"
#include "tests/support/skip.h"
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
  const std::pair<const char*, std::function<void(Builder&)>> rows[] = {
      {"workers must be between 1 and 1024, got 0", [](Builder& b) { b.workers(0); }},
      {"workers must be between 1 and 1024, got -2", [](Builder& b) { b.workers(-2); }},
      {"workers must be between 1 and 1024, got 1025", [](Builder& b) { b.workers(1025); }},
      {"averagingFrequency must be between 1 and 1099511627776, got 0",
       [](Builder& b) { b.averagingFrequency(0); }},
      {"averagingFrequency must be between 1 and 1099511627776, got 1099511627777",
       [](Builder& b) { b.averagingFrequency((std::int64_t{1} << 40) + 1); }},
      {"averagingFrequency must be between 1 and 1099511627776, got -1",
       [](Builder& b) { b.averagingFrequency(-1); }},
      {"prefetchBuffer must be between 0 and 1048576 batches, got -1",
       [](Builder& b) { b.prefetchBuffer(-1); }},
      {"prefetchBuffer must be between 0 and 1048576 batches, got 1048577",
       [](Builder& b) { b.prefetchBuffer((1 << 20) + 1); }},
      {"threadsPerWorker must be between 1 and 1024, got 0", [](Builder& b) { b.threadsPerWorker(0); }},
      {"threadsPerWorker must be between 1 and 1024, got 1025", [](Builder& b) { b.threadsPerWorker(1025); }},
      {"devices: the list is empty", [](Builder& b) { b.devices({}); }},
      {"listeners: one of them is null", [](Builder& b) { b.listeners({nullptr}); }},
      {"listeners: number 1 is number 0 again; each is called once",
       [listener = std::make_shared<RecordingListener>()](Builder& b) {
         b.listeners({listener, listener});
       }}};
  for (const auto& [problem, change] : rows) CHECK(refusal(change) == problem);
}

TEST_CASE("a device that this build cannot use is refused") {
  CHECK(refusal<DeviceUnavailable>([](Builder& b) {
          b.devices({Device::cpu(), Device::cuda(99)});
        }).starts_with("devices: cuda:99 cannot be used; there is cpu"));
  if (availableDevices().size() == 1)
    CHECK(refusal<DeviceUnavailable>([](Builder& b) { b.devices({Device::cuda(0)}); }) ==
          "devices: cuda:0 cannot be used; there is cpu, as " + whyNoCuda());
}

TEST_CASE("a mixture of workers on the CPU and on GPUs is refused, whatever devices there are") {
  CHECK(refusal([](Builder& b) {
          b.workers(4).devices({Device::cpu(), Device::cpu(), Device::cuda(1)});
        }) ==
        "devices: worker 0 would run on cpu and worker 2 on cuda:1; the CPU and GPUs cannot train together "
        "yet, so name GPUs alone, or cpu alone");
  CHECK(refusal([](Builder& b) {
          b.workers(2).devices({Device::cuda(0), Device::cpu()});
        }).starts_with("devices: worker 0 would run on cuda:0 and worker 1 on cpu; "));
}

TEST_CASE("a math mode that the CPU does not have is refused with the reason") {
  CHECK(refusal([](Builder& b) { b.mathMode(MathMode::TensorFloat32); }) ==
        "mathMode: cpu has no tf32: only GPUs have it");
  if (const auto why = whyNoMathMode(Device::cpu(), MathMode::BFloat16); !why.empty())
    CHECK(refusal([](Builder& b) { b.mathMode(MathMode::BFloat16); }) == "mathMode: cpu has no bf16: " + why);
  ToyModel model;
  CHECK(Builder(model).mathMode(MathMode::Float32).build().options().mathMode == MathMode::Float32);
  CHECK_FALSE(Builder(model).build().options().mathMode.has_value());
}

TEST_CASE("a GPU merges at most 32 replicas") {
  if (availableDevices().size() == 1) return skip(whyNoCuda());
  CHECK(refusal([](Builder& b) { b.workers(33).devices({Device::cuda(0)}); }) ==
        "devices: cuda:0 would have 33 of the 33 workers, and one GPU merges at most 32");
}

TEST_CASE("options have their defaults, and the values that were given") {
  const auto text = [](const ParallelWrapper& wrapper) {
    const auto& options = wrapper.options();
    const Averaging& rule = *options.strategy.as<Averaging>();
    return fmt::format("{} workers of {} threads on {} device, {}, prefetch {}, {}{}{}", options.workers,
                       options.threadsPerWorker, options.devices.size(), rule.make()->describe(),
                       options.prefetchBuffer, nameOf(rule.updaterState),
                       options.pinThreads ? ", pinned" : "",
                       options.reportScoreAfterAveraging ? ", reporting" : "");
  };
  ToyModel model;
  const auto defaults = Builder(model).build();
  CHECK(text(defaults) ==
        "1 workers of 1 threads on 1 device, averaging every iteration, prefetch 16, average, pinned");
  CHECK(defaults.options().devices == std::vector<Device>{Device::cpu()});
  const auto wrapper = Builder(model)
                           .workers(2)
                           .averagingFrequency(3)
                           .averageUpdaters(false)
                           .prefetchBuffer(24)
                           .reportScoreAfterAveraging(true)
                           .threadsPerWorker(2)
                           .pinThreads(false)
                           .build();
  CHECK(text(wrapper) ==
        "2 workers of 2 threads on 1 device, averaging every 3 iterations, prefetch 24, keep, reporting");
  CHECK(Builder(model)
            .averagingFrequency(3)
            .synchronousUntil(10)
            .build()
            .options()
            .strategy.as<Averaging>()
            ->frequency == Period::postLocal(10, 3));
  CHECK(wrapper.plan() ==
        "2 workers on cpu (2 threads each, not pinned), averaging every 3 iterations: 6 batches per round");
}

TEST_CASE("a training mode is the strategy of its name") {
  ToyModel model;
  for (const auto& [mode, name] : EnumNames<TrainingMode>::kNames) {
    const auto wrapper = Builder(model).workers(2).trainingMode(mode).build();
    const auto chosen = wrapper.options().strategy.make(), named = strategyNamed(name, "", 2).make();
    const Strategy &one = *chosen, &other = *named;
    CHECK((typeid(one) == typeid(other)));
  }
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

TEST_CASE("fit() refuses a negative number of epochs, and accepts 0") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2});
  auto wrapper = toyWrapper(model, 2).build();
  CHECK_REFUSED(wrapper.fit(data, -1), "fit: epochs cannot be negative, got -1");
  wrapper.fit(data, 0);
  CHECK(model.parameters()[0] == 0);
  CHECK(model.epoch() == 0);
  wrapper.fit(data);
  CHECK(model.epoch() == 1);
}
