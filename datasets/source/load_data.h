#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/input_description.h"
#include "muster/core/device/device.h"
#include "muster/datasets/image_placement.h"
#include "muster/datasets/source/data_contents.h"
#include "muster/datasets/source/data_source.h"

namespace muster {

/// Which examples of a file each part has: their numbers in the file, from 0 (of a table without its header),
/// in ascending order. Those to test with are numbered in a file of their own, if they have one.
struct DataRows {
  std::vector<std::int64_t> train = {}, validation = {}, test = {};
};

/// The largest class among the labels of a file, and the first example that has it, from 0.
struct LargestLabel {
  std::string file = {};
  std::int64_t label = -1, example = 0;
};

/// Data as iterators.
struct LoadedData {
  std::string type;         ///< as in data.type; what stands in for MNIST is `generated`
  std::string title;        ///< for display
  std::string notice;       ///< why they replace MNIST; "" if they do not
  std::string origin;       ///< source of the data
  std::string placed;       ///< note on the images' placement; "" if not needed
  std::string testWarning;  ///< that examples to test with are trained with; "" if they are not
  /// That classes have no example in a part that is held out; empty if all have.
  std::vector<std::string> heldOutWarnings = {};
  InputDescription description = {};  ///< for the network; empty if the data have none
  DataRows rows = {};                 ///< [example, without shuffling]
  /// The files of a directory of pictures, relative to it, which `rows` number; and those to test with, if
  /// they have a directory of their own.
  std::vector<std::string> files = {}, testFiles = {};
  std::vector<LargestLabel> largestLabels = {};  ///< of files whose classes have no names
  DataContents contents = {};                    ///< by which other contents of the same files are found
  std::unique_ptr<DataSetIterator> train;
  std::unique_ptr<DataSetIterator> validation, test;  ///< null: none
  std::unique_ptr<DataSetIterator> weighted;          ///< `train` with class weights; null: none
  std::vector<float> classWeights = {};               ///< [class] of `weighted`; empty: none

  /// The iterator to train on.
  DataSetIterator& training() { return weighted ? *weighted : *train; }
  /// Any of its examples: those to train on, or, if they were not read, those to test with.
  DataSetIterator& any() { return train ? training() : *test; }
};

/// Reads, downloads or generates the data.
/// @param placement  where images are kept.  @param devices  worker i computes on device i mod D of them.
/// @param workers  that will train, for the memory that is needed.
/// @param known  the description of a trained model, by which rows are read; data with other names or kinds
///        of columns, or other classes, are refused. Empty: the training examples decide.
/// @param part  train, validation or test: the log says what a known model's description lacks of these rows
/// of
///        a table alone. Empty: of all.
/// @throws InvalidArgument naming the field that does not fit the data; FileError, DownloadError.
LoadedData loadData(const DataSource& data, PlacementWish placement, std::span<const Device> devices,
                    int workers, const InputDescription& known = {}, std::string_view part = {});
/// As above, in the host's memory.
LoadedData loadData(const DataSource& data);

/// Each class with its weight, as "class weights: no 1, yes 5"; "" without weights.
std::string classWeightsLine(const LoadedData& data);

/// Reads the examples to test with alone, by the description of a trained model: the examples that it was
/// trained with need not be there. @return nothing if the data are of a type that a model does not describe
/// (a table and a folder of pictures are described), or there are none to test with.
/// @throws as loadData.
std::optional<LoadedData> loadTestData(const DataSource& data, const InputDescription& known);

}  // namespace muster
