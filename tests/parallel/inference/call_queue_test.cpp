#include "muster/parallel/inference/call_queue.h"

#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

Batch batchOf(std::int64_t examples, std::int64_t width = 2, DType type = DType::Float32,
              const char* name = "x") {
  Batch batch;
  Batch::ensure(batch.features, name, {examples, width}, type);
  return batch;
}

InferenceCall callOf(const Batch& batch, ParallelInference::Clock::time_point deadline) {
  return {.batch = batch, .examples = batch.examples(), .deadline = deadline};
}

/// A caller on its own thread, which waits until the call is in the queue.
struct Caller {
  Caller(CallQueue& queue, const Batch& batch)
      : call(callOf(batch, ParallelInference::kNoDeadline)), before(queue.waiting()) {
    thread = std::jthread([&] { problem = thrown<Error>([&] { queue.answer(call); }); });
    while (queue.waiting() == before) std::this_thread::yield();
  }
  InferenceCall call;
  const std::int64_t before;
  std::string problem;
  std::jthread thread;
};

}  // namespace

TEST_CASE("batches may be joined if names, types and the shapes of an example are equal") {
  CHECK(joinable(batchOf(1), batchOf(5)));
  CHECK_FALSE(joinable(batchOf(1), batchOf(1, 3)));
  CHECK_FALSE(joinable(batchOf(1), batchOf(1, 2, DType::UInt8)));
  CHECK_FALSE(joinable(batchOf(1), batchOf(1, 2, DType::Float32, "y")));
  Batch masked = batchOf(1);
  Batch::ensure(masked.masks, "features", {1, 2});
  CHECK_FALSE(joinable(batchOf(1), masked));
}

TEST_CASE("calls are joined up to the limit, in their order, and each gets its own rows") {
  CallQueue queue({.batchLimit = 4});
  const Batch three = batchOf(3), two = batchOf(2), one = batchOf(1);
  Caller a(queue, three), b(queue, two), c(queue, one);
  CHECK(queue.waiting() == 3);
  const auto first = queue.take();  // three and one fit, two does not
  REQUIRE(first);
  CHECK(first->calls == std::vector<InferenceCall*>{&a.call, &c.call});
  CHECK(first->examples == 4);
  CHECK(first->state == CallGroup::State::Taken);
  const auto second = queue.take();
  CHECK(second->calls == std::vector<InferenceCall*>{&b.call});
  CHECK(queue.waiting() == 0);
  const Tensor rows = Tensor::zeros({4, 1});
  rows.data<float>()[3] = 7;
  a.call.output = rows.rows(0, 3);
  c.call.output = rows.rows(3, 4);
  queue.release(*first);
  b.call.failure = std::make_exception_ptr(Error("boom"));
  queue.release(*second);
  for (auto* caller : {&a, &b, &c}) caller->thread.join();
  CHECK(a.problem == "");
  CHECK(b.problem == "boom");
  CHECK(c.call.output.data<float>()[0] == 7);
  CHECK(c.call.output.raw() != rows.rows(3, 4).raw());  // the caller owns it
}

TEST_CASE("without joining each call is a group") {
  CallQueue queue({.mode = InferenceMode::Sequential});
  const Batch one = batchOf(1);
  Caller a(queue, one), b(queue, one);
  for (auto* caller : {&a, &b}) {
    const auto group = queue.take();
    CHECK(group->calls == std::vector<InferenceCall*>{&caller->call});
    queue.release(*group);
  }
}

TEST_CASE("a call leaves at its deadline, and a full queue refuses calls") {
  CallQueue queue({.queueLimit = 1, .whenFull = WhenFull::Refuse});
  const Batch one = batchOf(1);
  InferenceCall late = callOf(one, ParallelInference::Clock::now());
  CHECK(thrown<DeadlineExceeded>([&] { queue.answer(late); }) ==
        "output: the deadline passed before it was computed");
  CHECK(queue.waiting() == 0);
  Caller waiting(queue, one);
  InferenceCall second = callOf(one, ParallelInference::kNoDeadline);
  CHECK(thrown<QueueFull>([&] { queue.answer(second); }) == "output: 1 call waits, which is the queue limit");
  queue.release(*queue.take());
}

TEST_CASE("a closed queue gives the calls that wait, then null, and refuses others") {
  CallQueue queue({});
  const Batch one = batchOf(1);
  Caller waiting(queue, one);
  queue.close();
  const auto group = queue.take();
  REQUIRE(group);
  queue.release(*group);
  CHECK(queue.take() == nullptr);
  InferenceCall late = callOf(one, ParallelInference::kNoDeadline);
  CHECK(thrown<InferenceShutDown>([&] { queue.answer(late); }) ==
        "output: this ParallelInference was shut down");
}

TEST_CASE("a group's callers wait for its answer, or until their deadline") {
  CallGroup group;
  CHECK_FALSE(group.waitUntilAnswered(ParallelInference::Clock::now() + 1ms));
  group.answer();
  CHECK(group.waitUntilAnswered(ParallelInference::Clock::now()));
  CHECK(group.waitUntilAnswered());
}
