#include "muster/core/device/buffer.h"
#include "muster/core/device/context.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/tensor/tensor.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

namespace muster {
namespace {

TEST_ON_DEVICES("an event is complete before it is first recorded and after wait()") {
  CHECK(Event().complete());
  Context context(Where::device());
  Event event(context);
  CHECK(event.complete());
  Tensor x = Tensor::zeros({1 << 20}, DType::Float32, Where::device());
  setZero(x, context);
  event.record(context);
  event.waitOn(context, Stream::Copy);
  event.wait();
  CHECK(event.complete());
  Event moved = std::move(event);
  moved.record(context, Stream::Copy);
  context.synchronize();
  CHECK(moved.complete());
}

TEST_ON_DEVICES("tensors are copied to a device and back, with and without a context") {
  Context context(Where::device());
  const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor there = copyTo(x, Where::device());
  CHECK(there.device() == Where::device());
  CHECK(std::memcmp(copyTo(there, Device::cpu()).raw(), x.raw(), x.bytes()) == 0);
  CHECK(std::memcmp(copyTo(cloneTensor(there), Device::cpu()).raw(), x.raw(), x.bytes()) == 0);

  Tensor staged = Tensor::pinned({2, 3}), back = Tensor::pinned({2, 3});
  CHECK(staged.device().isCpu());
  copy(x, staged);
  Tensor copied = Tensor::zeros({2, 3}, DType::Float32, Where::device());
  Event arrived(context);
  copy(staged, copied, context, Stream::Copy);
  arrived.record(context, Stream::Copy);
  arrived.waitOn(context);
  copy(copied, back, context);
  context.synchronize();
  CHECK(std::memcmp(back.raw(), x.raw(), x.bytes()) == 0);
  setZero(copied, context);
  context.synchronize();
  CHECK(copyTo(copied.rows(1, 2), Device::cpu()).data<float>()[2] == 0);
}

TEST_ON_DEVICES("a graph runs its work at each launch, in order with other work") {
  Context context(Where::device());
  Tensor from = copyTo(Tensor::of({1, 2}, {2}), Where::device()),
         to = copyTo(Tensor::of({0, 0}, {2}), Where::device());
  Graph graph(context, [&] { copy(from, to, context); });
  context.synchronize();
  CHECK(copyTo(to, Device::cpu()).data<float>()[0] == 0);  // made, not run
  graph.launch();
  context.synchronize();
  CHECK(copyTo(to, Device::cpu()).data<float>()[1] == 2);
  setZero(to, context);
  Graph moved = std::move(graph);
  moved.launch();
  context.synchronize();
  CHECK(copyTo(to, Device::cpu()).data<float>()[1] == 2);
}

TEST_ON_DEVICES("the side stream waits for earlier work, and work after its scope waits for it") {
  constexpr std::int64_t kElements = 1 << 20;
  Context context(Where::device());
  const auto made = [&] { return Tensor::zeros({kElements}, DType::Float32, Where::device()); };
  Tensor x = made(), first = made(), side = made(), beside = made(), inner = made(),
         results[] = {made(), made(), made()};
  const auto work = [&](bool permitted) {
    copy(x, first, context);
    SideStreamScope scope(context);
    scope.permit(permitted);
    context.onSideStream([&] {
      setZero(side, context);
      copy(first, side, context);
    });
    copy(x, beside, context);
    {
      SideStreamScope within(context);  // an inner scope does not use the side stream
      within.permit(true);
      context.onSideStream([&] { copy(x, inner, context); });
      copy(inner, results[0], context);
    }
    scope.join();
    copy(side, results[1], context);
    copy(beside, results[2], context);
    setZero(first, context);
    setZero(side, context);
  };
  const auto check = [&](float value, auto&& run) {
    CAPTURE(value);
    Tensor values = Tensor::empty({kElements});
    std::ranges::fill(values.span<float>(), value);
    copy(values, x);
    run();
    context.synchronize();
    for (const Tensor& result : results) {
      const Tensor got = copyTo(result, Device::cpu());
      CHECK(std::memcmp(got.raw(), values.raw(), values.bytes()) == 0);
    }
  };
  check(1, [&] { work(true); });  // the side stream is not prepared: all work is in order
  context.prepareSideStream();
  check(2, [&] { work(false); });
  Graph graph(context, [&] { work(true); });
  check(3, [&] { graph.launch(); });
  check(4, [&] { graph.launch(); });
  {
    SideStreamScope scope(context);
    scope.permit(true);
    CHECK_THROWS_AS(context.onSideStream([] { throw std::runtime_error("no"); }), std::runtime_error);
  }
  check(5, [&] { work(true); });
}

TEST_CASE_ON("work that throws while it is recorded makes no graph, and the context stays usable", Where,
             test::OnGpu) {
  Context context(Where::device());
  CHECK_THROWS_AS(Graph(context, [] { throw std::runtime_error("boom"); }), std::runtime_error);
  Tensor x = Tensor::zeros({4}, DType::Float32, Where::device());
  setZero(x, context);
  context.synchronize();
}

TEST_CASE_ON("an out-of-memory exception names the requested and the free bytes", Where, test::OnGpu) {
  const std::size_t bytes = propertiesOf(Where::device()).memoryBytes * 2;
  try {
    Buffer buffer(bytes, Where::device());
    FAIL("it was given");
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    CHECK_CONTAINS(text, std::to_string(bytes) + " bytes were asked for");
    CHECK_CONTAINS(text, "are free");
  }
  Buffer small(64, Where::device());  // the failure is forgotten
}

TEST_CASE("pinned memory is host memory, and stays pinned when it grows") {
  const Buffer buffer = Buffer::pinned(100);
  CHECK(buffer.isPinned());
  CHECK(buffer.device().isCpu());
  CHECK(!Buffer(100, Device::cpu()).isPinned());
  std::memset(buffer.data(), 7, buffer.bytes());
  Tensor tensor = Tensor::pinned({3}, DType::Int64);
  tensor.resize({300}, DType::Int64);
  tensor.data<std::int64_t>()[299] = 5;
  CHECK(tensor.elements() == 300);
}

TEST_CASE("the CPU multiplies in float32, on request in bf16 if it can, and refuses other math modes") {
  CHECK(Context().mathMode() == MathMode::Float32);
  CHECK(Context(Device::cpu(), {.mathMode = MathMode::Float32}).mathMode() == MathMode::Float32);
  CHECK_REFUSED(Context(Device::cpu(), {.mathMode = MathMode::TensorFloat32}),
                "context: cpu has no tf32: only GPUs have it");
  const ContextOptions rounded{.mathMode = MathMode::BFloat16};
  const auto why = whyNoMathMode(Device::cpu(), MathMode::BFloat16);
  if (why.empty()) {
    CHECK(Context(Device::cpu(), rounded).mathMode() == MathMode::BFloat16);
    return;
  }
  const auto refusal = "context: cpu has no bf16: " + why;
  CHECK_REFUSED(Context(Device::cpu(), rounded), refusal);
}

/// CMakeLists.txt runs it with such limits, too.
TEST_CASE("the reason why the CPU has no bf16 names the missing instructions") {
  const auto why = whyNoMathMode(Device::cpu(), MathMode::BFloat16);
  const auto limited = [](const char* name) { return std::getenv(name) != nullptr; };
  if (why == "the processor has neither AVX-512 BF16 nor AMX") return test::skip(why);
  if (limited("MUSTER_MAX_CPU_ISA"))
    CHECK(why == "MUSTER_MAX_CPU_ISA excludes AVX-512 BF16 and AMX, which it needs");
  else if (limited("ONEDNN_MAX_CPU_ISA"))
    CHECK(why == "ONEDNN_MAX_CPU_ISA excludes AVX-512 BF16 and AMX, which it needs");
  else
    CHECK(why.empty());
}

TEST_CASE_ON("a GPU's context has the given math mode, TF32 by default if the GPU has it", Where,
             test::OnGpu) {
  const bool fast = propertiesOf(Where::device()).tensorFloat32;
  CHECK(Context(Where::device()).mathMode() == (fast ? MathMode::TensorFloat32 : MathMode::Float32));
  CHECK(Context(Where::device(), {.mathMode = MathMode::Float32}).mathMode() == MathMode::Float32);
  if (fast)
    CHECK(Context(Where::device(), {.mathMode = MathMode::BFloat16}).mathMode() == MathMode::BFloat16);
}

}  // namespace
}  // namespace muster
