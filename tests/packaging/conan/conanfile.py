"""Conan recipe of muster, from this checkout. In the project's folder:

    conan create tests/packaging/conan -s compiler.cppstd=20 --build=missing

tests/consumer is its test package. oneDNN comes from the system (Debian: libdnnl-dev), because Conan Center has no recipe
of it; with -o "muster/*:system_libs=True" so does all else, and nothing is fetched.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class MusterConan(ConanFile):
    name = "muster"
    license = "Apache-2.0"
    description = "Trains one neural network with several workers at once, averaging their parameters"
    topics = ("deep-learning", "data-parallel", "training")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "cuda": [True, False],
        "system_libs": [True, False],  # use the system's Boost, libcurl, fmt, ...
        "modules": [True, False],  # nodes, gloo, onnx, page, tensorboard and torch, if the system has their dependencies
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "cuda": False,
        "system_libs": False,
        "modules": False,
        "boost/*:without_json": False,
    }
    implements = ["auto_shared_fpic"]
    test_package_folder = os.path.join("..", "..", "consumer")

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._checkout, "CMakeLists.txt"))
        self.version = re.search(r"project\(muster VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "core/*", "datasets/*", "parallel/*"):
            copy(self, pattern, self._checkout, self.export_sources_folder)

    def requirements(self):
        if self.options.system_libs:
            return
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("fmt/[>=8 <12]", transitive_headers=True)
        self.requires("concurrentqueue/[>=1.0.4 <2]", transitive_headers=True)
        self.requires("libcurl/[>=7.78 <9]")
        self.requires("libjpeg-turbo/[>=2 <4]")
        self.requires("libpng/[>=1.6 <2]")
        self.requires("openssl/[>=3 <4]")
        self.requires("zlib/[>=1.2.11 <2]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        variables = toolchain.cache_variables
        variables["MUSTER_BUILD_TESTS"] = variables["MUSTER_BUILD_EXAMPLES"] = False
        variables["MUSTER_CUDA"] = "ON" if self.options.cuda else "OFF"
        if not self.options.modules:
            for package in ("Gloo", "MPI", "ONNX", "Protobuf", "Torch"):
                variables["CMAKE_DISABLE_FIND_PACKAGE_" + package] = True
            variables["MUSTER_DYGRAPHS"] = "MUSTER_DYGRAPHS-NOTFOUND"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # muster's own CMake configuration defines the components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "muster")]
