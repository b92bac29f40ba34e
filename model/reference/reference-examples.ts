import type { ElementType } from "../cell/cell.ts";

const pool = `shop extends Cell {
  racks extends Pool {
    x.authorised ["ROOT/acme/dev", "ROOT/acme/test"];
  }
  rack1 extends PoolHost {
    x.pool "<ref:../racks>";
    x.flavor "large";
    x.enabled true;
  }
  vm extends VM {
    x.memory 512;
    x.placement.pool "shop/racks";
  }
}
`;
const places = `root extends Cell {
  places extends {
    z1 extends Zone {
      p1 extends Pod {
        c1 extends Cluster;
      }
    }
  }
  hosts extends {
    h1 extends Host {
      x.cluster "z1/p1/c1";
    }
  }
}
`;

/** A small cell for each type, with an element of it: what the reference page shows. */
export const referenceExamples: Readonly<Record<ElementType | "Cell", string>> = {
  Cell: `shop extends Cell {
  x.policy.deploy "all-or-none";
  x.limits.vms 10;
  x.limits.memory 8192;
}
`,
  VM: `shop extends Cell {
  web extends VM {
    x.memory 512;
    x.cpus 2;
    x.restartOnFailure true;
    x.liveness.protocol "icmp";
    x.data extends {
      role "web";
    }
  }
}
`,
  Volume: `shop extends Cell {
  image extends Volume {
    x.size 64;
    x.access "ro";
    x.import "tiny";
  }
  data extends Volume {
    x.size 10240;
  }
  cache extends Volume {
    x.size 1024;
    x.recreatable true;
  }
}
`,
  VolumeCopy: `shop extends Cell {
  image extends Volume {
    x.size 64;
    x.access "ro";
    x.import "tiny";
  }
  disk extends VolumeCopy {
    x.image "<ref:/shop/image>";
    x.size 2048;
  }
}
`,
  Subnet: `shop extends Cell {
  front extends Subnet {
    x.size 16;
  }
  back extends Subnet {
    x.cidr "10.64.8.0/24";
  }
}
`,
  VolumeConnection: `shop extends Cell {
  data extends Volume {
    x.size 1024;
  }
  db extends VM {
    x.memory 512;
  }
  disk extends VolumeConnection {
    x.vm "<ref:/shop/db>";
    x.volume "<ref:/shop/data>";
    x.bootOrder 1;
  }
}
`,
  VirtualInterface: `shop extends Cell {
  front extends Subnet {
    x.cidr "10.64.8.0/24";
  }
  web extends VM {
    x.memory 512;
  }
  card extends VirtualInterface {
    x.vm "<ref:/shop/web>";
    x.subnet "<ref:/shop/front>";
    x.vifName "www";
    x.address "10.64.8.10";
  }
}
`,
  NetworkRule: `shop extends Cell {
  front extends Subnet {
    x.size 16;
    x.addressRange "external";
  }
  customers extends NetworkRule {
    x.address1 "internet";
    x.address2 "<ref:/shop/front>";
    x.protocol "tcp";
    x.port2 443;
    x.direction "1to2";
  }
}
`,
  VolumeGrant: `shop extends Cell {
  image extends Volume {
    x.size 64;
    x.public true;
  }
  forTeam extends VolumeGrant {
    x.volume "<ref:/shop/image>";
    x.cell "<ref://team.cells.example.com/>";
    x.grant "copy";
  }
}
`,
  Host: `root extends Cell {
  hosts extends {
    h1 extends Host {
      x.state "maintenance";
      x.tags ["ssd"];
    }
  }
}
`,
  Domain: `root extends Cell {
  tenants extends {
    acme extends Domain {
      x.limits.vms 50;
      x.limits.publicAddresses 16;
    }
  }
}
`,
  Account: `root extends Cell {
  tenants extends {
    acme extends Domain {
      dev extends Account {
        x.limits.cells 2;
        x.limits.vms 10;
      }
    }
  }
}
`,
  Role: `root extends Cell {
  tenants extends {
    acme extends Domain {
      operators extends Role {
        x.rules ["deny vm.console", "allow vm.*", "allow cell.read"];
      }
    }
  }
}
`,
  Zone: places,
  Pod: places,
  Cluster: places,
  Dedication: `root extends Cell {
  dedications extends {
    racks extends Dedication {
      x.of "z1/p1";
      x.to "ROOT/acme";
      x.account "dev";
    }
  }
}
`,
  AffinityGroup: `shop extends Cell {
  replicas extends AffinityGroup {
    x.kind "host anti-affinity";
  }
  one extends VM {
    x.memory 256;
    x.placement.groups ["replicas"];
  }
  other extends VM {
    x.memory 256;
    x.placement.groups ["replicas"];
  }
}
`,
  Offering: `root extends Cell {
  offerings extends {
    small extends Offering {
      x.displayText "One processor, alone or among its account's";
      x.memory 1024;
      x.planner "ImplicitDedicationPlanner";
      x.mode "Preferred";
    }
  }
}
`,
  HostFlavor: `root extends Cell {
  flavors extends {
    large extends HostFlavor {
      x.description "2 × 16 cores, 256 GiB";
      x.units 4;
    }
  }
}
`,
  Pool: pool,
  PoolHost: pool,
  CellController: `shop extends Cell {
  team extends CellController {
    x.name "team";
    x.cell extends {
      team extends Cell {
        x.limits.vms 5;
      }
    }
  }
}
`,
};
