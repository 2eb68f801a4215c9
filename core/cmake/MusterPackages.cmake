# Debian packages by `cpack` in a build that was configured with
#   -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DCMAKE_INSTALL_PREFIX=/usr
# libmuster0.1 and libmuster-dev hold the base, muster the program; each component that needs more has two packages of its
# own, so that libtorch and libonnx are installed on request alone. They are for the release of Debian that they were built
# on.
if(NOT BUILD_SHARED_LIBS OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(so_version "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The muster maintainers <maintainers@users.noreply.a-seed-62f475b2.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0muster1)  # marks a package that is not Debian's
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data-parallel training by parameter averaging")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_COMPONENTS_ALL "")

# Debian requires a licence and a changelog in every package.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/packages/changelog" @ONLY CONTENT [[
muster (@version@) unstable; urgency=medium

  * See CHANGELOG.md.

 -- @CPACK_PACKAGE_CONTACT@  @now@
]])
file(ARCHIVE_CREATE OUTPUT "${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz"
  PATHS "${PROJECT_BINARY_DIR}/packages/changelog" FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/packages/copyright" @ONLY CONTENT [[
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: muster

Files: *
Copyright: 2026, the muster maintainers
License: Apache-2.0
 On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.
]])

# For libraries: a trigger for ldconfig, and the package on which programs that link them depend.
file(WRITE "${PROJECT_BINARY_DIR}/packages/triggers" "activate-noawait ldconfig\n")

# muster_package(<component> <package> <summary> <depends> [<libraries>...]): makes a package of the component's
# installed files: a library package if libraries are given, otherwise a development package. The component program is
# neither.
function(muster_package component package summary depends)
  string(TOUPPER "${component}" id)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} "${component}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_NAME "${package}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_SECTION libdevel PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_DESCRIPTION "muster trains one neural network with several workers at once, on CPUs,
GPUs and many machines, and merges their parameters.
.
This package has ${summary}." PARENT_SCOPE)
  set(doc "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}")
  install(FILES "${PROJECT_BINARY_DIR}/packages/copyright" "${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz"
    DESTINATION "${doc}" COMPONENT "${component}")
  if(component STREQUAL "program")
    set(CPACK_DEBIAN_${id}_PACKAGE_SECTION science PARENT_SCOPE)
    set(CPACK_DEBIAN_${id}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  endif()
  if(NOT ARGN)
    return()
  endif()
  set(shlibs "")
  foreach(library IN LISTS ARGN)
    string(APPEND shlibs "libmuster_${library} ${so_version} ${package} (>= ${PROJECT_VERSION})\n")
  endforeach()
  set(control "${PROJECT_BINARY_DIR}/packages/${package}")
  file(WRITE "${control}/shlibs" "${shlibs}")
  set(CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA "${control}/shlibs;${PROJECT_BINARY_DIR}/packages/triggers" PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_SECTION libs PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  set(overrides "# CPack writes these scripts for every library.\n${package}: maintscript-calls-ldconfig *\n")
  list(LENGTH ARGN libraries)
  if(libraries GREATER 1)
    string(APPEND overrides "# Libraries that are used together are one package.\n${package}: package-name-doesnt-match-sonames *\n")
  endif()
  file(WRITE "${control}/overrides" "${overrides}")
  install(FILES "${control}/overrides" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides" RENAME "${package}"
    COMPONENT "${component}")
endfunction()

set(same "(= ${version})")
set(base "libmuster${so_version}")
muster_package(library "${base}" "the libraries" "" ${muster_base})
muster_package(dev libmuster-dev "what programs are built with"
  "${base} ${same}, libfmt-dev, libconcurrentqueue-dev")
set(needs_torch ", libtorch-dev")
set(does_dl4j "models of Deeplearning4j")
set(does_gloo "training over several machines by Gloo")
set(does_nodes "training over several machines by MPI")
set(does_onnx "models as ONNX files")
set(does_page "a live page of a training")
set(does_run "trainings that run files describe")
set(does_tensorboard "event files for TensorBoard")
set(does_torch "training of libtorch modules")
set(library_run "")  # the modules that it uses, if they are built
foreach(module IN LISTS MUSTER_RUN_MODULES)
  string(APPEND library_run ", libmuster-${module}${so_version} ${same}")
  string(APPEND needs_run ", libmuster-${module}-dev ${same}")
endforeach()
foreach(component IN LISTS muster_built)
  if(NOT component IN_LIST muster_base)
    set(own "libmuster-${component}${so_version}")
    muster_package(${component}-library "${own}" "a part of it: ${does_${component}}"
      "${base} (>= ${PROJECT_VERSION})${library_${component}}" ${component})
    muster_package(${component}-dev "libmuster-${component}-dev" "what programs are built with for a part of it:
${does_${component}}" "${own} ${same}, libmuster-dev ${same}${needs_${component}}")
  endif()
endforeach()
if(MUSTER_BUILD_EXAMPLES)
  set(needs "${base} ${same}")
  foreach(part muster_program muster_program_parts muster_run)
    get_target_property(linked ${part} LINK_LIBRARIES)
    foreach(component IN LISTS muster_built)
      if(NOT component IN_LIST muster_base AND linked MATCHES "muster(::|_)${component}" AND NOT needs MATCHES
          "libmuster-${component}${so_version}")
        string(APPEND needs ", libmuster-${component}${so_version} ${same}")
      endif()
    endforeach()
  endforeach()
  muster_package(program muster "the program: trainings by run files, tests and predictions" "${needs}")
endif()
# The folder in which dpkg-shlibdeps finds the libraries of this build's other packages; it writes no dependency on
# them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "")
foreach(component IN LISTS muster_built)
  get_target_property(folder muster_${component} BINARY_DIR)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${folder}")
endforeach()
include(CPack)
