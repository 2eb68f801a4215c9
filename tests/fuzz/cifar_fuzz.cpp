// CIFAR-10's records, plain or gzip.
#include "muster/datasets/cifar10.h"
#include "muster/datasets/image_set.h"
#include "tests/datasets/gzip.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kRecord = 1 + 3 * 32 * 32;

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  std::shared_ptr<const ImageSet> set;
  if (!isRead(path, [&] { set = readCifar10(std::span(&path, 1)); })) return;
  expect(set->size() > 0 && set->imageShape() == Shape{3, 32, 32}, "the images are not those of CIFAR-10");
  for (std::int64_t i = 0; i < set->size(); ++i) expect(set->label(i) < 10, "a label is out of range");
}

std::string records(std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    all += static_cast<char>(i % 10) + std::string(kRecord - 1, static_cast<char>(i));
  return all;
}

std::vector<Bytes> seeds() {
  return {bytesOf(test::gzip(records(1))), bytesOf(test::gzip(records(3))), bytesOf(records(1))};
}

/// Packs another number of records, one of them with another label.
void mutate(Bytes& bytes, Draw& draw) {
  std::string all = records(draw.below(4));
  if (!all.empty() && draw.oneIn(2))
    all[draw.below(all.size() / kRecord) * kRecord] = static_cast<char>(draw.bits());
  if (draw.oneIn(4)) all.resize(draw.below(all.size() + 1));
  if (draw.oneIn(4)) all += static_cast<char>(draw.bits());
  bytes = bytesOf(test::gzip(all));
  if (draw.oneIn(2)) mutateBytes(bytes, draw);
}

}  // namespace

const Target targets::cifar{"cifar", &run, &seeds, &mutate};

}  // namespace muster::fuzz
