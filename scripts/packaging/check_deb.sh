#!/usr/bin/env bash
# check_deb.sh ORRERY.deb: installs the package on a clean Debian 12 in a chroot, as root, runs it there as an ordinary user on one
# and on two ranks, draws the results, and removes the package. It needs debootstrap and the network, and takes some minutes.
set -euo pipefail
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
  echo "check_deb: give the .deb, such as build/release/orrery_0.2.0_amd64.deb" >&2
  exit 2
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap > /dev/null; then
  echo "check_deb: this needs root and debootstrap (apt-get install debootstrap)" >&2
  exit 2
fi
root=$(mktemp --directory --tmpdir orrery-deb.XXXXXX)
chmod 755 "$root"  # it becomes the / of the ordinary user
clean_up() {
  for folder in proc sys; do
    if mountpoint --quiet "$root/$folder"; then umount "$root/$folder"; fi
  done
  rm -rf --one-file-system "$root"
}
trap clean_up EXIT

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
as_user() { inside setpriv --reuid=user --regid=user --init-groups --reset-env bash -euc "cd; $1"; }

debootstrap --variant=minbase bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
cp "$1" "$root/tmp/orrery.deb"
inside apt-get update
inside apt-get install --yes /tmp/orrery.deb
inside useradd --create-home user

as_user 'orrery --version'
as_user 'printf "system: {base: dgx-h100-superpod}\nworkload: {model: llama3-8b, parallel: {tp: 8, dp: 128}}\n" > step.yaml
  orrery check step.yaml'
small='/usr/share/orrery/configs/llama3-8b-64.yaml --set workload.model.layers=4'
as_user "orrery run $small --output one.h5"
as_user "/usr/share/orrery/scripts/mpirun.sh 2 orrery run $small --output two.h5"
as_user '/usr/share/orrery/scripts/plot_results.py two.h5 --output two.png'
as_user 'python3 -c "
import orrery
one, two = orrery.open(\"one.h5\"), orrery.open(\"two.h5\")
print(one)
assert (one.npus.finish_time == two.npus.finish_time).all()"'
inside apt-get purge --yes orrery
if inside sh -c 'command -v orrery'; then
  echo "check_deb: the program is still there after the package was removed" >&2
  exit 1
fi
echo "check_deb: the package installs on a clean Debian 12, runs and can be removed"
