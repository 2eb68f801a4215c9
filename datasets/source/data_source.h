#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/datasets/table.h"
#include "muster/datasets/table_description.h"

namespace muster {

/// The data sets that are downloaded, by the names that `DataSource::type` takes.
inline constexpr std::array<std::string_view, 4> kPublishedData{"mnist", "fashion", "kmnist", "cifar10"};

/// MNIST, or generated digits if it is neither found nor fetched.
inline constexpr std::string_view kMnistOrGenerated = "mnistOrGenerated";

inline constexpr auto kDataTypes = [] {
  constexpr std::array<std::string_view, 7> others{kMnistOrGenerated, "generated",  "mixtures", "idx", "csv",
                                                   "images",          "safetensors"};
  std::array<std::string_view, kPublishedData.size() + others.size()> all{};
  std::ranges::copy(others, std::ranges::copy(kPublishedData, all.begin()).out);
  return all;
}();

/// Where data come from, how they are divided, and how they become batches: the part `data` of a run file.
/// `loadData` (load_data.h) makes iterators of it. Paths are relative to the working directory; "" is none.
struct DataSource {
  std::string type = {};  ///< one of kDataTypes
  // the published ones (kPublishedData)
  std::string directory = {};  ///< of the files; "": MUSTER_DATA_DIR, the cache, or a download
  // these, generated and mixtures; 0: all, else each class in equal shares
  std::int64_t trainExamples = 0;
  /// As trainExamples. Of the other types: held out of the training examples, for data without a test set.
  std::int64_t testExamples = 0;
  // idx
  std::string trainImages = {}, trainLabels = {}, testImages = {}, testLabels = {};
  std::int64_t classes = 10;
  // csv, safetensors and images; a directory for images
  std::string train = {}, test = {};
  // csv
  bool header = true;
  std::string label = {};
  std::string separator = ",";
  bool regression = false;
  std::vector<std::string> columns = {};   ///< to learn from; empty: all but the label
  std::vector<std::string> leaveOut = {};  ///< not to learn from
  // images
  bool grey = false;
  std::int64_t height = 0, width = 0;  ///< to which all are stretched; 0: all must have one size
  // all
  std::int64_t validationExamples = 0;  ///< held out from the training examples, for listeners: drawn by the
                                        ///< seed, each class in equal shares
  std::int64_t splitSeed = -1;          ///< the seed that draws what is held out; -1: `seed`
  std::int64_t batch = 128;
  bool dropLast = false;    ///< leaves out the last batch of a training epoch if it is not full
  std::int64_t seed = 123;  ///< for the order of the training examples
  bool shuffle = true;
  std::vector<double> classWeights = {};

  /// @param json  an object with these fields, as in {"type": "csv", "train": "rows.csv"}.
  /// @throws InvalidArgument for a field that is unknown, of the wrong type or out of range.
  static DataSource parse(std::string_view json);
  /// The fields that its type has, as JSON that `parse` reads.
  std::string toJson() const;
  /// @throws InvalidArgument naming a field, as in "data.batch", that is missing, out of range, or
  ///         contradicts another.
  void validate() const;

  /// How its tables are read, and what is learned from them.
  TableFormat tableFormat() const;
  TableOptions tableOptions() const;

  /// The files and folders that it names, and the files of published data sets that are there, each with the
  /// field that leads to it, as in {"data.train", "rows.csv"}.
  std::vector<std::pair<std::string, std::filesystem::path>> files() const;
};

}  // namespace muster
