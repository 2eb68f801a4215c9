// safetensors files: a file that is read is written back with the same contents.
#include "muster/core/io/safetensors.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

bool same(const Safetensors& a, const Safetensors& b) {
  const auto sameEntry = [&](const Safetensors::Entry& entry) {
    const Tensor* const other = b.find(entry.name);
    return other != nullptr && other->shape() == entry.values.shape() &&
           other->dtype() == entry.values.dtype() &&
           std::memcmp(other->raw(), entry.values.raw(), entry.values.bytes()) == 0;
  };
  return a.metadata == b.metadata && a.tensors.size() == b.tensors.size() &&
         std::ranges::all_of(a.tensors, sameEntry);
}

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  Safetensors contents;
  if (!isRead(path, [&] { contents = readSafetensors(path); })) return;
  std::size_t total = 0;
  for (const auto& entry : contents.tensors) total += entry.values.bytes();
  expect(total < bytes.size(), "tensors hold more than the file");
  const auto copy = writtenBy([&](const auto& to) { writeSafetensors(to, contents); });
  expect(same(contents, readSafetensors(file.of(copy))), "a file that was read and written is another one");
}

std::vector<Bytes> seeds() {
  const auto written = [](const Safetensors& contents) {
    return writtenBy([&](const auto& path) { writeSafetensors(path, contents); });
  };
  Safetensors several;
  several.add("weights", Tensor::zeros({2, 3}));
  several.add("exact", Tensor::zeros({2}, DType::Float64));
  several.add("count", Tensor::zeros({1}, DType::Int64));
  several.add("bytes", Tensor::zeros({5}, DType::UInt8));
  several.add("nothing", Tensor::zeros({0, 7}));
  several.metadata = {{"format", "pt"}, {"note", "a \"quoted\" text, \xC3\xA9"}};
  return {written({}), written(several)};
}

void mutate(Bytes& bytes, Draw& draw) {
  auto file = Container::in(bytes);
  if (!file) return mutateBytes(bytes, draw);
  file->mutateHeader(draw, 1 + draw.below(3));
  if (draw.oneIn(2)) file->settleOffsets();
  bytes = file->bytes();
  if (draw.oneIn(8)) {  // the length of the header
    const std::int64_t length = draw.hostile();
    std::memcpy(bytes.data(), &length, sizeof length);
  }
}

}  // namespace

const Target targets::safetensors{"safetensors", &run, &seeds, &mutate};

}  // namespace muster::fuzz
