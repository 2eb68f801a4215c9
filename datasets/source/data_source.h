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

/// Which part of a date is first where the year is last: what `DataSource::dateOrder` takes.
inline constexpr std::array<std::string_view, 3> kDateOrders{"auto", "monthDayYear", "dayMonthYear"};

/// Where data come from, how they are divided, and how they become batches: the part `data` of a run file.
/// `loadData` (load_data.h) makes iterators of it. Paths are relative to the working directory; "" is none.
struct DataSource {
  std::string type = {};  ///< one of kDataTypes
  // the published ones (kPublishedData)
  std::string directory = {};  ///< of the files; "": MUSTER_DATA_DIR, the cache, or a download
  // these, generated and mixtures
  std::int64_t trainExamples = 0;  ///< how many to use, each class in equal shares; 0: all
  /// As trainExamples. Of the other types: held out of the training examples, for data without a test set.
  std::int64_t testExamples = 0;
  // idx
  std::string trainImages = {}, trainLabels = {}, testImages = {}, testLabels = {};
  std::int64_t classes = 10;  ///< from 2 to 256
  // csv, safetensors and images; a directory for images
  std::string train = {}, test = {};
  // csv
  bool header = true;           ///< the first line has the names of the columns
  std::string label = {};       ///< column to predict, by its name or its number from 1; "": the last one
  std::string separator = ",";  ///< one character
  bool regression = false;      ///< the label is a number to predict, not a class
  std::vector<std::string> columns = {};   ///< to learn from; empty: all but the label
  std::vector<std::string> leaveOut = {};  ///< not to learn from
  std::string dateOrder = "auto";          ///< of dates whose year is last, one of kDateOrders
  // images
  bool grey = false;                   ///< reads pictures as grey
  std::int64_t height = 0, width = 0;  ///< to which all are stretched; 0: all must have one size
  // all
  std::int64_t validationExamples = 0;  ///< held out from the training examples, for listeners: drawn by
                                        ///< `splitSeed`, each class in equal shares
  std::int64_t splitSeed = -1;          ///< the seed that draws what is held out; -1: `seed`
  std::int64_t batch = 128;             ///< examples in a batch of one worker
  bool dropLast = false;                ///< leaves out the last batch of a training epoch if it is not full
  std::int64_t seed = 123;  ///< for the order of the training examples, and for what is held out (splitSeed)
  bool shuffle = true;      ///< the training examples have a new order in each epoch
  std::vector<double> classWeights = {};  ///< [class] factor in the loss; empty: 1 for each
  /// The names of the classes that `classWeights` are of, others have 1; empty: all classes, in order. In
  /// JSON both are an object: {"rare": 5}.
  std::vector<std::string> weightedClasses = {};

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
