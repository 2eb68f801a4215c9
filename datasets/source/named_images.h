#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/datasets/image_set.h"
#include "muster/datasets/source/data_source.h"

namespace muster {

/// Seed of generated digits and mixtures; independent of `DataSource::seed`, so that another one trains on
/// the same examples.
inline constexpr std::uint64_t kDrawingSeed = 20;

/// The images to train and to test with.
struct NamedImages {
  std::string name = {};    ///< as in DataSource::type; what stands in for MNIST is `generated`
  std::string title = {};   ///< for display
  std::string origin = {};  ///< source of the data
  std::string notice = {};  ///< why these data replace MNIST; empty if they do not
  std::shared_ptr<const ImageSet> train = {}, test = {};
};

/// Reads, downloads or generates the images of a published data set, `generated`, `mixtures`, or
/// `mnistOrGenerated`: MNIST, or generated digits if MNIST is neither found nor downloaded.
/// @throws FileError for a missing directory or a broken file, DownloadError if the data are not available.
NamedImages namedImages(const DataSource& source);

/// The files of published data sets in `source.directory`, in MUSTER_DATA_DIR and in the cache, each with
/// what names its place, as in "data.directory".
std::vector<std::pair<std::string, std::filesystem::path>> publishedFiles(const DataSource& source);

}  // namespace muster
