#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/picture.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/predictions.h"

namespace muster {

/// What a PictureModel says of pictures.
struct PicturePredictions : Predictions {
  std::vector<std::string> files = {};  ///< [N] relative to the directory; of a single picture its name
  /// A message for each picture of a directory that is broken and has no row.
  std::vector<std::string> unreadable = {};
};

/// A trained network with its `InputDescription`: predicts pictures of any size, by the model's file alone.
///
/// ```cpp
/// auto model = PictureModel::load("model.safetensors");
/// const auto predicted = model.predict("holiday/beach.jpg");
/// fmt::print("{}\n", predicted.classOf(0));
/// fmt::print("{}\n", model.evaluate("labelled").summary());   // labelled/cat/*, labelled/dog/*
/// ```
///
/// Use it from one thread at a time.
class PictureModel {
 public:
  /// @throws InvalidArgument if the network's description has no pictures or classes, or others than the
  ///         network's input and output.
  explicit PictureModel(std::unique_ptr<Network> network);
  /// @throws FileError as Network::load, and as above.
  static PictureModel load(const std::filesystem::path& path);

  Network& network() { return *network_; }
  const InputDescription& description() const { return network_->inputDescription(); }
  /// How a file becomes an input of the network.
  PictureOptions options() const;

  /// @param path  a picture, or a directory: all pictures in it and in its directories, sorted by name. One
  ///         line of the log says how many other files are left out. A broken picture of a directory is named
  ///         by a warning and in `unreadable`; the others are predicted.
  /// @throws FileError naming a single picture that cannot be read, or a directory without pictures or with
  ///         broken ones only; NonFinitePrediction naming a picture for which an output is NaN or infinite.
  PicturePredictions predict(const std::filesystem::path& path);
  /// Predicts the pictures of a directory of directories, which are called as classes of the model, and
  /// compares. @throws FileError as readImageFolder.
  AnyEvaluation evaluate(const std::filesystem::path& directory);

 private:
  /// Reads pictures and predicts them. @return [N, outputs] and, for each that cannot be read, why.
  std::pair<Tensor, std::vector<std::optional<FileError>>> outputsFor(
      std::span<const std::filesystem::path> paths);

  std::unique_ptr<Network> network_;
};

}  // namespace muster
