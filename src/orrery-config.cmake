# find_package(orrery) defines the target orrery::orrery: the library behind the program, with its headers.
#
# The library is static, so a program that links it needs the libraries that the modules use.
include(CMakeFindDependencyMacro)

get_property(orrery_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST orrery_languages)
  set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
  set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "orrery needs the language C for MPI and HDF5: write project(NAME LANGUAGES C CXX)")
  return()
endif()

# orrery_need(<package> <Debian's package> [<arguments of find_package>...])
macro(orrery_need package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "orrery needs ${package}, which is missing (on Debian: ${debian})")
    return()
  endif()
endmacro()

set(MPI_CXX_SKIP_MPICXX ON)
orrery_need(MPI libopenmpi-dev COMPONENTS C CXX)
orrery_need(HDF5 libhdf5-dev COMPONENTS C HL)
orrery_need(Protobuf libprotobuf-dev)
orrery_need(ZLIB zlib1g-dev)
orrery_need(fmt libfmt-dev)
orrery_need(yaml-cpp libyaml-cpp-dev)
orrery_need(cxxopts libcxxopts-dev)
orrery_need(nlohmann_json nlohmann-json3-dev)
orrery_need(simdjson libsimdjson-dev)
orrery_need(tinyxml2 libtinyxml2-dev)
orrery_need(Boost libboost-dev)

include(${CMAKE_CURRENT_LIST_DIR}/orrery-targets.cmake)
