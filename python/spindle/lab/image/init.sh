#!/bin/busybox sh
# The first program in the lab. /dev/hvc0 is the terminal, or the command's standard output; /dev/hvc1 its standard
# error; what is written to /dev/hvc2 is read by Spindle.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/mdadm /dev/shm
hostname lab
ln -sf /proc/mounts /etc/mtab
echo 3 >/proc/sys/kernel/printk

# Kept open: the last close would undo the settings.
exec 3<>/dev/hvc0 4<>/dev/hvc1 5<>/dev/hvc2
stty raw -echo <&4
stty raw -echo <&5
cd /root
if [ -e /lab/command ]; then
    stty raw -echo <&3
    # Through pipes: programs write to a terminal otherwise than to a file.
    mkfifo /run/out /run/err
    cat </run/out >&3 &
    cat </run/err >&4 &
    sh /lab/command </dev/null >/run/out 2>/run/err 3<&- 4>&- 5>&-
    status=$?
    wait
else
    sh /lab/terminal <&3
    setsid sh -c 'exec sh -i </dev/hvc0 >/dev/hvc0 2>&1' 3<&- 4>&- 5>&-
    status=$?
fi
echo "status $status" >&5
poweroff -n -f
