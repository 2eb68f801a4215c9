#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/io/picture.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/predictions.h"

namespace muster {

/// What a PictureModel says of pictures.
struct PicturePredictions : Predictions {
  std::vector<std::string> files = {};  ///< [N]
};

/// A trained network with its `InputDescription`: predicts pictures of any size, by the model's file alone.
///
/// ```cpp
/// auto model = PictureModel::load("model.safetensors");
/// const auto predicted = model.predict("holiday/beach.jpg");
/// fmt::print("{}\n", predicted.classes.front());
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

  /// @param path  a picture, or a directory: all pictures in it and in its directories, sorted by name.
  /// @throws FileError naming a picture that cannot be read, or a directory without pictures.
  PicturePredictions predict(const std::filesystem::path& path);

 private:
  /// [N, outputs]
  Tensor outputsFor(std::span<const std::filesystem::path> paths);

  std::unique_ptr<Network> network_;
};

}  // namespace muster
