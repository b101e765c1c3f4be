# What `cmake --install` installs, and where: the library and its headers, the command, the examples, and the files for
# find_package(kumi) and pkg-config. The installed tree may be moved: its files find each other by relative paths.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kumi)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS kumi EXPORT kumi-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The component mpi is a library for the MPI that `mpicc` belongs to.
if(KUMI_MPI)
    install(TARGETS kumi_mpi_${KUMI_MPI} EXPORT kumi-mpi-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT kumi-mpi-targets NAMESPACE kumi:: DESTINATION ${package_dir})
endif()
if(KUMI_COMMAND)
    install(TARGETS kumi_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET kumi_boot_pmix)
    install(TARGETS kumi_boot_pmix LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kumi)
endif()

if(TARGET kumi_fi) # where libfabric looks by itself, if the prefix is the system's
    install(TARGETS kumi_fi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/libfabric)
endif()

get_target_property(kumi_type kumi TYPE)
if(KUMI_COMMAND AND kumi_type STREQUAL "SHARED_LIBRARY")
    file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(kumi_command PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
    set_target_properties(kumi PROPERTIES INSTALL_RPATH "$ORIGIN/kumi")
endif()

# What programs may include is in public_headers.txt.
install(CODE "set(KUMI_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
set(KUMI_INCLUDE_DIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
set(KUMI_MPI \"${KUMI_MPI}\")")
install(SCRIPT cmake/install_headers.cmake)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kumi/examples FILES_MATCHING PATTERN "*.cpp")
# What `kumi bench` uses, by paths relative to its own: goals, labs, and a program for each peer that was found.
install(FILES bench/goals.toml DESTINATION share/kumi)
install(FILES lab/figure3.toml bench/labs/lan_only.toml bench/labs/two_hosts.toml bench/labs/two_networks.toml
        DESTINATION share/kumi/labs)
install(DIRECTORY ${PROJECT_BINARY_DIR}/libexec/kumi DESTINATION libexec USE_SOURCE_PERMISSIONS OPTIONAL)
if(TARGET kumi_bench_command)
    install(TARGETS kumi_bench_command RUNTIME DESTINATION libexec/kumi OPTIONAL)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT kumi-targets NAMESPACE kumi:: DESTINATION ${package_dir})
configure_package_config_file(cmake/kumi-config.cmake.in ${PROJECT_BINARY_DIR}/kumi-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kumi-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kumi-config.cmake ${PROJECT_BINARY_DIR}/kumi-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
if(OPENSSL_FOUND)
    set(pc_crypto " libcrypto")
endif()
configure_file(cmake/kumi.pc.in ${PROJECT_BINARY_DIR}/kumi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kumi.pc DESTINATION ${pkgconfig_dir})
if(KUMI_MPI)
    configure_file(cmake/kumi-mpi.pc.in ${PROJECT_BINARY_DIR}/kumi-mpi.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/kumi-mpi.pc DESTINATION ${pkgconfig_dir})
endif()

# The tree tests install the build and use the installed files.
if(TARGET tree_tests)
    add_dependencies(tree_tests kumi kumi_command)
    if(KUMI_MPI)
        add_dependencies(tree_tests kumi_mpi_${KUMI_MPI})
    endif()
endif()
