#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/io/picture.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Options of `readImageFolder`.
struct ImageFolderOptions {
  PictureColour colour = PictureColour::Rgb;
  /// All pictures are stretched to this height and width, as `resizePicture` does; one number is both. 0: all
  /// must have the first one's.
  Size2d size = 0;
  /// The classes of another folder of the same data, in order; empty: the directories, sorted.
  std::vector<std::string> classes = {};
};

/// Images with the names of their classes.
struct ImageFolder {
  std::shared_ptr<const ImageSet> images;  ///< [N, 1 or 3, H, W]
  std::vector<std::string> classes;        ///< [class]
  std::vector<std::string> files;          ///< [N], as in "cats/1.jpg"

  /// Classes and size, for `Network::setInputDescription`: so the model's file alone predicts new pictures.
  const InputDescription& description() const { return images->description(); }
};

/// Reads `directory/<class>/*`, all files that are called .png, .jpg or .jpeg, classes and files in the order
/// of their names, with several threads. One line of the log says how many other files are left out; hidden
/// files are ignored. `readPicture` says how a file becomes numbers.
/// @throws FileError for fewer than two classes, a class without pictures, a directory that is not a class,
///         or a picture that is broken or, without `size`, of another size than the first; OutOfMemory naming
///         the directory if there is no room for all images, before more than the first one is read.
ImageFolder readImageFolder(const std::filesystem::path& directory, const ImageFolderOptions& options = {});

/// The pictures of a directory and of all directories in it, as paths relative to it, sorted; hidden ones
/// are ignored. @throws FileError if one cannot be read.
/// @param warnLeftOut  whether one line of the log says how many other files are left out.
std::vector<std::string> picturesIn(const std::filesystem::path& directory, bool warnLeftOut = false);

}  // namespace muster
