#include "muster/datasets/kmnist.h"

#include "muster/datasets/mnist_format.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("KMNIST is published at its address with its checksums, and one of the sets in MNIST's format") {
  const auto& kmnist = KmnistDataSetIterator::kPublished;
  CHECK(std::ranges::equal(KmnistDataSetIterator::kClassNames,
                           Names{"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"}));
  CHECK(kmnist.address == "https://codh.rois.ac.jp/kmnist/dataset/kmnist/");
  CHECK(std::string_view(kmnist.addressVariable) == "MUSTER_KMNIST_URL");
  CHECK((kmnist.sumOf == SumOf::Packed));
  Names sums;
  for (const auto& [name, sum] : kmnist.files) sums.push_back(fmt::format("{} {}", name, sum));
  CHECK(sums == Names{"train-images-idx3-ubyte.gz bdb82020997e1d708af4cf47b453dcf7",
                      "train-labels-idx1-ubyte.gz e144d726b3acfaa3e44228e80efcd344",
                      "t10k-images-idx3-ubyte.gz 5c965bf0a639b31b8f53240b1b52f4d7",
                      "t10k-labels-idx1-ubyte.gz 7320c461ea6c1c855c0b718fb2a4b134"});
  const auto sets = mnistFormatSets();
  for (const char* name : {"mnist", "fashion-mnist", "kmnist"})
    CHECK(std::ranges::count(sets, name, &PublishedSet::name) == 1);
  CHECK(std::ranges::find(sets, "kmnist", &PublishedSet::name)->files.data() == kmnist.files.data());
}

}  // namespace
}  // namespace muster
