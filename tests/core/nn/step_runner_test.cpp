#include "muster/core/nn/step/step_runner.h"

#include "muster/core/nn/step/score_ring.h"
#include "muster/core/ops/loss.h"
#include "tests/core/nn/test.h"
#include "tests/support/allocations.h"
#include "tests/support/devices.h"
#include "tests/support/log_lines.h"

// A step here computes a loss of its features; its inputs and results use a staging slot as a network's do.

using namespace muster;
using namespace muster::detail;

namespace {

Batch batchOf(float value, std::int64_t examples = 2) {
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", {examples, 3});
  std::ranges::fill(features.span<float>(), value);
  return batch;
}

Tensor onCpu(const Tensor& tensor) {
  return copyTo(tensor, Device::cpu());
}

Graph recorded(Context& context, std::function<void()> work) {
  return Graph(context, std::move(work));
}

struct Steps {
  explicit Steps(bool recordable = true, Device device = Device::cpu(),
                 StepRunner::Record recorder = recorded)
      : context(device),
        runner(
            batchOf(0), 1, recordable, [this](StagingSlot& slot, StepWork work) { enqueue(slot, work); },
            [this](std::uint64_t number, const StagingSlot& slot, StepWork work) {
              finished.push_back(fmt::format("{}{}", number, work == StepWork::Update ? "u" : "g"));
              values.push_back(slot.results().hostLoss(0)[0]);
            },
            context, std::move(recorder)) {}

  void enqueue(StagingSlot& slot, StepWork) {
    ++calls;
    slot.fetch();
    if (fail) throw std::runtime_error("no");
    if (std::exchange(outOfMemoryOnce, false)) throw OutOfMemory("no");
    lossInto(Loss::MeanSquaredError, slot.batch().features[0].value, zeros(), {}, none, {},
             slot.results().loss(0), context);
    slot.results().fetch();
  }
  const Tensor& zeros() {
    if (!zeros_.defined()) zeros_ = Tensor::zeros({2, 3}, DType::Float32, context.device());
    return zeros_;
  }
  void run(std::uint64_t number, float value, StepWork work = StepWork::Update) {
    runner.begin(batchOf(value));
    runner.run(number, work);
  }

  Context context;
  int calls = 0;
  bool fail = false, outOfMemoryOnce = false;
  std::vector<std::string> finished;
  std::vector<double> values;
  Tensor none, zeros_;
  StepRunner runner;
};

}  // namespace

TEST_ON_DEVICES("steps alternate between two staging slots, and each finishes before its slot is reused") {
  Steps steps(true, Where::device());
  for (int i = 1; i <= 5; ++i) {
    steps.run(static_cast<std::uint64_t>(i), static_cast<float>(i));
    CHECK(steps.finished.size() == static_cast<std::size_t>(std::max(0, i - 2)));
  }
  steps.runner.finish(5);  // asked for out of order
  steps.runner.finish(5);
  CHECK(steps.runner.complete(5));
  steps.runner.finish();
  CHECK(steps.finished == std::vector<std::string>{"1u", "2u", "3u", "5u", "4u"});
  // Two rows of the mean of three squares: each step has read its own batch.
  CHECK(steps.values == std::vector<double>{2, 8, 18, 50, 32});
}

TEST_CASE("the first step of each kind of work is run call by call, and later ones are launched as graphs") {
  Steps steps;
  std::vector<std::int64_t> launched;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    steps.run(i, 1, i % 3 == 0 ? StepWork::Gradient : StepWork::Update);
    launched.push_back(steps.runner.counts().launched);
  }
  CHECK(launched == std::vector<std::int64_t>{0, 1, 1, 2, 3, 4});
  steps.runner.finish();
  CHECK(steps.finished == std::vector<std::string>{"1u", "2u", "3g", "4u", "5u", "6g"});
}

TEST_CASE("steps that cannot be recorded are always run call by call, and counted") {
  Steps steps(false), recordable;
  for (std::uint64_t i = 1; i <= 4; ++i) steps.run(i, 1);
  for (std::uint64_t i = 1; i <= 6; ++i) recordable.run(i, 1, i < 4 ? StepWork::Update : StepWork::Gradient);
  CHECK(steps.calls == 4);
  CHECK(steps.runner.counts().unrecorded == 3);  // the first one loads libraries
  CHECK(recordable.runner.counts().launched == 4);
  StepCounts both = steps.runner.counts();
  both += recordable.runner.counts();
  CHECK(both.launched == 4);
  CHECK(both.unrecorded == 3);
}

TEST_CASE("runners that are constructed anew for each step launch no graphs, which their counts show") {
  StepCounts anew;
  for (int i = 0; i < 4; ++i) {
    Steps steps;
    steps.run(1, 1);
    CHECK(steps.runner.counts().first == 1);
    anew += steps.runner.counts();
  }
  CHECK(anew.first == 4);
  CHECK(anew.all() == 4);
  CHECK(anew.unrecorded == 0);
  CHECK_FALSE(anew.recorded());
  Steps steps;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    CHECK_FALSE(steps.runner.counts().recorded());
    steps.run(i, 1);
  }
  CHECK(steps.runner.counts().recorded());  // nine of ten
  CHECK_FALSE(StepCounts{.launched = 99, .unrecorded = 1}.recorded());
}

TEST_CASE("a recording that becomes invalid is given up, and the same steps run call by call") {
  const test::LogLines lines;
  int attempts = 0;
  Steps steps(true, Device::cpu(), [&](Context&, const std::function<void()>& work) -> Graph {
    ++attempts;
    work();
    throw DeviceFailure("layer dense1: this operation is not permitted when stream is capturing");
  });
  for (std::uint64_t i = 1; i <= 5; ++i) steps.run(i, static_cast<float>(i));
  steps.runner.finish();
  CHECK(attempts == 1);
  CHECK(steps.values == std::vector<double>{2, 8, 18, 32, 50});
  CHECK(steps.runner.counts().launched == 0);
  CHECK(steps.runner.counts().unrecorded == 4);
  REQUIRE(lines.all().size() == 1);
  CHECK_CONTAINS(lines.all()[0], "run call by call: layer dense1: this operation is not permitted");
}

TEST_CASE("a step inside the caller's own side stream scope does not count towards a recording") {
  int attempts = 0;
  Steps steps(true, Device::cpu(), [&](Context& context, std::function<void()> work) {
    ++attempts;
    return Graph(context, std::move(work));
  });
  {
    const SideStreamScope scope(steps.context);
    steps.run(1, 1);
    steps.run(2, 2);
  }
  CHECK(attempts == 0);
  steps.run(3, 3);  // the first with the side stream
  CHECK(attempts == 0);
  steps.run(4, 4);
  CHECK(attempts == 1);
  {
    const SideStreamScope scope(steps.context);
    steps.run(5, 5);
  }
  steps.run(6, 6);
  steps.runner.finish();
  CHECK(steps.runner.counts().launched == 2);
  CHECK(steps.values == std::vector<double>{2, 8, 18, 32, 50, 72});
}

TEST_CASE("a step that fails when it is enqueued leaves the staging slots unchanged") {
  Steps steps;
  steps.run(1, 1);
  steps.fail = true;
  CHECK(test::thrown<std::runtime_error>([&] { steps.run(2, 2); }) == "no");
  CHECK(steps.runner.complete(2));  // unknown
  steps.fail = false;
  steps.run(3, 3);
  steps.run(4, 4);
  steps.runner.finish();
  CHECK(steps.values == std::vector<double>{2, 18, 32});
}

TEST_CASE("steps allocate nothing once they are recorded") {
  Steps steps;
  const auto batch = batchOf(1);
  steps.finished.reserve(64);
  steps.values.reserve(64);
  const auto run = [&](std::uint64_t number) {
    steps.runner.begin(batch);
    steps.runner.run(number, StepWork::Update);
  };
  for (std::uint64_t i = 1; i <= 4; ++i) run(i);
  for (std::uint64_t i = 5; i <= 9; ++i) CHECK(test::allocationsIn([&] { run(i); }) == 0);
}

TEST_CASE(
    "a staging slot fits batches with its names, types, shapes and sources of rows, which it does not own") {
  Context context;
  const auto batch = test::classBatch({3}, 2, 2, 1);
  const auto source = [] { return std::make_shared<const ResidentTensor>(Tensor::zeros({5}, DType::Int64)); };
  const StagingSlot slot(batch, 1, context);
  CHECK(slot.fits(batch));
  CHECK_FALSE(slot.fits(test::classBatch({3}, 3, 2, 1)));
  CHECK_FALSE(slot.fits(test::targetBatch({3}, 2, 2, 1)));
  auto bytes = batch, rows = batch, masked = batch, named = batch;
  bytes.features[0].value = Tensor::zeros({2, 3}, DType::UInt8);
  rows.labels[0].source = source();
  Batch::ensure(masked.masks, "labels", {2});
  named.features[0].name = "other";
  for (const Batch& other : {bytes, rows, masked, named}) CHECK_FALSE(slot.fits(other));

  const StagingSlot gathering(rows, 1, context);
  CHECK(rows.labels[0].source.use_count() == 1);
  CHECK(gathering.fits(rows));
  rows.labels[0].source = source();
  CHECK_FALSE(gathering.fits(rows));
  CHECK_FALSE(gathering.fits(batch));
}

TEST_ON_DEVICES("a staging slot gathers each tensor by its own rows, and copies the step's numbers") {
  Context context(Where::device());
  const Tensor images = Tensor::of({0, 1, 10, 11, 20, 21, 30, 31, 40, 41}, {5, 2}),
               classes = test::integers({100, 101, 102, 103, 104});
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", {2}, DType::Int64);
  batch.features[0].source = std::make_shared<const ResidentTensor>(images);
  Tensor& labels = Batch::ensure(batch.labels, "labels", {2}, DType::Int64);
  batch.labels[0].source = std::make_shared<const ResidentTensor>(classes);
  Tensor& mask = Batch::ensure(batch.masks, "labels", {2});
  StagingSlot slot(batch, 1, context);
  for (std::int64_t turn = 0; turn < 3; ++turn) {
    CAPTURE(turn);
    copy(test::integers({turn, 4}), features);
    copy(test::integers({3, 2 - turn}), labels);
    std::ranges::fill(mask.span<float>(), static_cast<float>(turn));
    batch.stamp = {.epoch = 7 + turn, .firstExample = 20 * turn};
    slot.send(batch);
    slot.hostUpdateNumbers().data<double>()[0] = 0.5;
    slot.fetchAlone();
    context.synchronize();
    const Batch& got = slot.batch();
    const auto row = static_cast<float>(10 * turn);
    CHECK(test::sameBits(got.features[0].value, Tensor::of({row, row + 1, 40, 41}, {2, 2})));
    CHECK(test::sameBits(got.labels[0].value, test::integers({103, 102 - turn})));
    CHECK(onCpu(got.masks[0].value).data<float>()[1] == static_cast<float>(turn));
    CHECK(test::sameBits(slot.position(), test::integers({7 + turn, 20 * turn})));
    CHECK(onCpu(slot.updateNumbers()).data<double>()[0] == 0.5);
  }
}

TEST_CASE_ON("if a graph does not fit into memory, steps are run call by call", Where, test::OnGpu) {
  Steps steps(true, Where::device());
  steps.run(1, 1);
  steps.outOfMemoryOnce = true;
  steps.run(2, 2);
  steps.run(3, 3);
  steps.runner.finish();
  CHECK(steps.runner.counts().launched == 0);
  CHECK(steps.values == std::vector<double>{2, 8, 18});
}

TEST_CASE("scores and failures are kept by number, and forgotten after many others") {
  ScoreRing ring;
  const auto first = ring.nextNumber(), second = ring.nextNumber();
  CHECK_FALSE(ring.has(first));
  ring.put(first, {.score = 1.5, .weight = 2});
  ring.put(second, std::make_exception_ptr(InvalidArgument("row 3")));
  CHECK(ring.get(first).score == 1.5);
  CHECK(ring.get(first).weight == 2);
  CHECK_REFUSED(ring.get(second), "row 3");
  std::uint64_t number = second;
  for (std::size_t i = 2; i < ScoreRing::kSteps; ++i) ring.put(number = ring.nextNumber(), StepScore{});
  CHECK(ring.get(first).score == 1.5);
  ring.put(ring.nextNumber(), StepScore{});
  CHECK_REFUSED(ring.get(first), "step: 64 others came since, and its score was forgotten");
}
