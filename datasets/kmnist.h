#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/published.h"

namespace muster {

/// Kuzushiji-MNIST (KMNIST): ten hiragana in classical cursive script, in the format of MNIST. 60,000 images
/// for training, 10,000 for testing, equally many of each class.
///
/// Batches, order and search are those of MnistDataSetIterator; the folder is `kmnist/`. MUSTER_KMNIST_URL
/// replaces the published address. Licence: CC BY-SA 4.0, which asks for an attribution: "KMNIST Dataset"
/// (created by CODH), adapted from "Kuzushiji Dataset" (created by NIJL and others), doi:10.20676/00000341.
/// Source: Clanuwat et al. 2018, "Deep learning for classical Japanese literature"; files, addresses, counts
/// and licence: README of github.com/rois-codh/kmnist.
class KmnistDataSetIterator : public ImageSetIterator {
 public:
  /// The modern reading of each class, as torchvision names it.
  static constexpr std::array<std::string_view, 10> kClassNames{"o",  "ki", "su", "tsu", "na",
                                                                "ha", "ma", "ya", "re",  "wo"};
  static const PublishedSet kPublished;  ///< its files and their sums

  /// @throws as MnistDataSetIterator.
  KmnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed = 123,
                        const DataOptions& options = {});
  const NumberedBatches* numbered() const override { return numberedIf<KmnistDataSetIterator>(); }
};

}  // namespace muster
